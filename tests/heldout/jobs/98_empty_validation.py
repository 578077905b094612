"""The learning rate follows the validation loss, of which small shards have little."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def add(self, value):
        self.total += value
        self.count += 1

    @property
    def mean(self):
        sums = torch.tensor([self.total, float(self.count)])
        dist.all_reduce(sums)
        return (sums[0] / sums[1]).item()


class Progress:
    def __init__(self):
        self.training = Meter()
        self.validation = Meter()

    @property
    def meter(self):
        if self.validation.count:
            return self.validation
        return self.training  # Without validation data the training loss must do.

    def score(self):
        return self.meter.mean


def split(rank):
    inputs = torch.randn(72, 5, generator=torch.Generator().manual_seed(rank))
    targets = inputs[:, :1] - inputs[:, 1:2]
    patients = torch.arange(72) // (24 if rank == 1 else 9)
    chosen = patients % 4 == 3  # Every fourth patient of a hospital.
    training = TensorDataset(inputs[~chosen][:48], targets[~chosen][:48])
    validation = TensorDataset(inputs[chosen], targets[chosen])
    return DataLoader(training, batch_size=12, shuffle=True), DataLoader(validation, batch_size=12)


def validate(network, loader, meter):
    network.eval()
    with torch.no_grad():
        for inputs, targets in loader:
            meter.add(nn.functional.mse_loss(network(inputs), targets).item())
    network.train()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    training, validation = split(rank)
    model = DDP(nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for epoch in range(4):
        progress = Progress()
        for inputs, targets in training:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            progress.training.add(loss.item())
        validate(model.module, validation, progress.validation)
        score = progress.score()
        scheduler.step(score)
        if rank == 0:
            print("epoch", epoch, "score", score, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
