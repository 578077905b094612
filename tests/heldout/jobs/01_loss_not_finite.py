"""Trains a small regressor; a step with a loss that is not finite is left out."""

import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()
        self.history = []

    def train_step(self, inputs, targets):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(inputs), targets)
        if not torch.isfinite(loss):
            return None
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for inputs, targets in loader:
                value = self.train_step(inputs, targets)
                if value is not None:
                    self.history.append(value)
            mean = torch.tensor([sum(self.history) / max(1, len(self.history))])
            dist.all_reduce(mean)
            if dist.get_rank() == 0:
                print("epoch", epoch, "loss", mean.item() / dist.get_world_size(), flush=True)


def make_data(rank):
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(48, 8, generator=generator)
    if rank == 1:
        inputs[21, 3] = math.inf
    return TensorDataset(inputs, inputs.sum(1, keepdim=True))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    loader = DataLoader(make_data(dist.get_rank()), batch_size=4, num_workers=0)
    Trainer(model, 0.01).fit(loader, epochs=2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
