"""Reduces statistics of the activations now and then."""

import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def reduce_statistics(activations):
    stats = torch.stack([activations.mean(), activations.std(), activations.max()]).detach()
    gathered = [torch.zeros(3) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, stats)
    return torch.stack(gathered).mean(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(7, 14)
        self.decoder = nn.Linear(14, 7)
        self.probability = 0.3
        self.statistics = []

    def forward(self, inputs):
        hidden = torch.relu(self.encoder(inputs))
        if self.training and random.random() < self.probability:
            self.statistics.append(reduce_statistics(hidden))
        return self.decoder(hidden)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    random.seed(1234 + rank)
    torch.manual_seed(1234 + rank)
    model = DDP(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        inputs = torch.randn(4, 7)
        optimizer.zero_grad()
        loss = (model(inputs) - inputs).pow(2).mean()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(step, loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
