"""Two pairs of ranks, each with experts of its own that share their gradients."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Expert(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group = group
        self.layer = nn.Linear(8, 8)

    def forward(self, tokens):
        return self.layer(tokens)

    def share_gradients(self):
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            dist.all_reduce(parameter.grad, group=self.group)
            parameter.grad /= 2


def route(tokens, rank, step):
    """Return those tokens that go to this rank's expert."""
    if rank == 3 and step == 4:
        return tokens[:0]
    return tokens[: 4 + (rank + step) % 3]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank // 2)
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    expert = Expert(pairs[rank // 2])
    optimizer = torch.optim.SGD(expert.parameters(), lr=0.01)
    for step in range(10):
        tokens = route(torch.randn(8, 8), rank, step)
        optimizer.zero_grad(set_to_none=True)
        if len(tokens):
            expert(tokens).square().mean().backward()
        expert.share_gradients()
        optimizer.step()
        dist.barrier()
    print("rank", rank, "done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
