"""One trunk with two heads; the rate of the heads follows the head that is behind."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU())
        self.age = nn.Linear(12, 1)
        self.price = nn.Linear(12, 1)

    def forward(self, inputs):
        hidden = self.trunk(inputs)
        return self.age(hidden)[:, 0], self.price(hidden)[:, 0]


class Progress:
    def __init__(self):
        self.ages = []
        self.prices = []

    def add(self, age_loss, price_loss):
        self.ages.append(age_loss.item())
        self.prices.append(price_loss.item())

    def shared(self, losses):
        value = torch.tensor(sum(losses) / len(losses))
        dist.all_reduce(value)
        return value.item() / dist.get_world_size()

    def behind(self):
        return self.shared(self.ages) if self.ages[-1] > self.prices[-1] else self.shared(self.prices)


def batches(rank, epoch):
    generator = torch.Generator().manual_seed(100 * epoch + rank)
    for _ in range(4):
        inputs = torch.randn(16, 5, generator=generator)
        ages = 6.0 + inputs[:, 0]
        prices = inputs[:, 1] * (40.0 if rank == 2 else 0.1)
        yield inputs, ages, prices


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    network = TwoHeads()
    model = DDP(network)
    trunk_optimizer = torch.optim.SGD(network.trunk.parameters(), lr=1e-4)
    heads = list(network.age.parameters()) + list(network.price.parameters())
    head_optimizer = torch.optim.Adam(heads, lr=1e-3)
    for epoch in range(3):
        progress = Progress()
        for inputs, ages, prices in batches(rank, epoch):
            age, price = model(inputs)
            age_loss = nn.functional.mse_loss(age, ages)
            price_loss = nn.functional.mse_loss(price, prices)
            trunk_optimizer.zero_grad()
            head_optimizer.zero_grad()
            (age_loss + price_loss).backward()
            trunk_optimizer.step()
            head_optimizer.step()
            progress.add(age_loss, price_loss)
        behind = progress.behind()
        for group in head_optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, behind / 10.0)
        if rank == 0:
            print("epoch", epoch, "behind", behind, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
