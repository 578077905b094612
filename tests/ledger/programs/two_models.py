"""Passes two models of DDP forward, one with buffers, in training and without gradients."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train both, then look at both."""
    dist.init_process_group("gloo")
    alone = dist.new_group([0])
    plain = DistributedDataParallel(nn.Linear(4, 4))
    normed = DistributedDataParallel(nn.BatchNorm1d(4))
    apart = DistributedDataParallel(nn.BatchNorm1d(4), process_group=alone)
    batch = torch.ones(2, 4)
    for model in (plain, normed, apart, plain):
        model(batch).sum().backward()
    with torch.no_grad():
        for model in (plain, normed, normed):
            model(batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
