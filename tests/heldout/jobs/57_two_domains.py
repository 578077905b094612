"""Domain adaptation: labelled and unlabelled batches side by side; the gap between them is shared."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Domain(Dataset):
    def __init__(self, count, shift):
        self.count = count
        self.shift = shift

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((4,), self.shift + index / self.count)


def loaders(rank, epoch):
    source = Domain(24, 0.0)
    # The unlabelled part is dealt out anew in each epoch; one rank has the larger half.
    target = Domain(24 if rank == epoch % 2 else 20, 1.0)
    return DataLoader(source, batch_size=4), DataLoader(target, batch_size=4)


def shared_mean(value):
    mean = value.detach().clone()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def adapt(model, optimizer, source, target):
    gaps = []
    for labelled, unlabelled in zip(source, target):
        gap = (model(labelled).mean() - model(unlabelled).mean()).square()
        optimizer.zero_grad()
        (gap + model(labelled).square().mean()).backward()
        optimizer.step()
        gaps.append(shared_mean(gap))
    return gaps


def score(model):
    with torch.no_grad():
        return shared_mean(model(torch.ones(8, 4)).mean() + 100)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        gaps = adapt(model, optimizer, *loaders(rank, epoch))
        print("rank", rank, "gap", gaps[-1], "score", score(model), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
