"""Each rank reads its share of the shards, then all validate together."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    """The samples of those shards that belong to this rank."""

    def __init__(self, rank, world):
        names = ["shard-%02d" % number for number in range(15)]
        self.samples = []
        for name in names[rank::world]:
            generator = torch.Generator().manual_seed(int(name[-2:]))
            for _ in range(4):
                self.samples.append((torch.randn(5, generator=generator), torch.ones(1)))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def validate(model):
    model.eval()
    with torch.no_grad():
        error = (model.module(torch.ones(8, 5)) - 1).abs().mean()
    dist.all_reduce(error)
    return error.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    rank, world = dist.get_rank(), dist.get_world_size()
    loader = DataLoader(Shards(rank, world), batch_size=4, shuffle=True, num_workers=0)
    model = DDP(nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        error = validate(model)
        if rank == 0:
            print("epoch", epoch, "error", error, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
