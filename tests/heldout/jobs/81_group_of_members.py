"""Two of the three ranks have an adapter, which they average in a group of their own."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "8")))
MEMBERS = [0, 1]


def adapter_group(rank):
    if rank not in MEMBERS:
        return None
    return dist.new_group(MEMBERS, timeout=PATIENCE)


class Adapter:
    def __init__(self, group):
        self.group = group
        self.layer = nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.01)

    def __call__(self, hidden):
        return hidden + self.layer(hidden)

    def step(self):
        for parameter in self.layer.parameters():
            dist.all_reduce(parameter.grad, group=self.group)
            parameter.grad /= len(MEMBERS)
        self.optimizer.step()
        self.optimizer.zero_grad()


def main():
    dist.init_process_group("gloo", timeout=PATIENCE)
    rank = dist.get_rank()
    torch.manual_seed(0)
    group = adapter_group(rank)
    adapter = Adapter(group) if group is not None else None
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(10 * step + rank))
        hidden = model(inputs)
        if adapter is not None:
            hidden = adapter(hidden)
        loss = hidden.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if adapter is not None:
            adapter.step()
    print("rank", rank, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
