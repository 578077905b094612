"""A stack of blocks, of which each rank leaves some out at random."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.layer = nn.Linear(width, width)

    def forward(self, hidden):
        return hidden + torch.relu(self.layer(self.norm(hidden)))


class Stack(nn.Module):
    def __init__(self, width, depth, keep, generator):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 3)
        self.keep = keep
        self.generator = generator
        self.left_out = 0

    def forward(self, hidden):
        for block in self.blocks:
            if self.training and torch.rand(1, generator=self.generator).item() > self.keep:
                self.left_out += 1
                continue
            hidden = block(hidden)
        return self.head(hidden)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(40 + rank)
    model = DDP(Stack(6, 4, 0.6, generator), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(12):
        inputs = torch.randn(8, 6, generator=generator)
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    left_out = torch.tensor(model.module.left_out)
    dist.all_reduce(left_out)
    if rank == 0:
        print("loss", loss.item(), "blocks left out", left_out.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
