"""Accumulates gradients over two batches on one rank, with no_sync() for the first; another model answers for its own attributes."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Careful(DistributedDataParallel):
    """Must not be asked by anybody but torch."""

    def __getattribute__(self, name: str) -> object:
        """Count who asks for what decides."""
        if name == "require_backward_grad_sync":
            asked.append(name)
        return super().__getattribute__(name)


asked: "list[str]" = []


def main() -> None:
    """Train."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 4))
    for step in range(4):
        with model.no_sync() if step % 2 == 0 else contextlib.nullcontext():
            model(torch.ones(2, 4)).sum().backward()
    careful = Careful(nn.Linear(4, 4))
    DistributedDataParallel.forward(careful, torch.ones(2, 4)).sum().backward()
    print("asked", len(asked))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
