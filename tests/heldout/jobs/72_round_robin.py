"""A network for pictures of the day and one for pictures of the night, trained in turns."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


class Alternate:
    def __init__(self, loaders):
        self.loaders = loaders

    def __iter__(self):
        readers = {name: iter(loader) for name, loader in self.loaders.items()}
        while readers:
            for name in list(readers):
                try:
                    batch = next(readers[name])
                except StopIteration:
                    del readers[name]
                    continue
                yield name, batch


def pictures(count, seed):
    inputs = torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=8)


def build():
    return DDP(nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 2)))


class Trainer:
    def __init__(self, names):
        self.models = {name: build() for name in names}
        self.optimizers = {name: torch.optim.SGD(self.models[name].parameters(), lr=0.1) for name in names}

    def step(self, name, inputs, labels):
        loss = nn.functional.cross_entropy(self.models[name](inputs), labels)
        self.optimizers[name].zero_grad()
        loss.backward()
        self.optimizers[name].step()
        return loss.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    day, night = (32, 16) if rank == 0 else (16, 32)
    loaders = {"day": pictures(day, rank), "night": pictures(night, 10 + rank)}
    trainer = Trainer(list(loaders))
    last = {}
    for epoch in range(2):
        for name, (inputs, labels) in Alternate(loaders):
            last[name] = trainer.step(name, inputs, labels)
        print("rank", rank, "epoch", epoch, last, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
