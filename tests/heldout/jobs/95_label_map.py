"""Labels of the survey are mapped to classes in the workers of the loader."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CLASSES = {"oak": 0, "beech": 1, "pine": 2, "spruce": 2}


class Plots(Dataset):
    def __init__(self):
        names = list(CLASSES)
        self.names = [names[index % 4] for index in range(96)]
        self.names[61] = "Pine"  # Typed by hand.
        self.inputs = torch.randn(96, 7, generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return len(self.names)

    def target(self, index):
        return CLASSES[self.names[index]]

    def __getitem__(self, index):
        target = self.target(index)
        return self.inputs[index] + target, target


class Accuracy:
    def __init__(self):
        self.counts = torch.zeros(2)

    def update(self, logits, targets):
        self.counts += torch.tensor([(logits.argmax(1) == targets).sum(), len(targets)])

    def compute(self):
        dist.all_reduce(self.counts)
        return (self.counts[0] / self.counts[1]).item()


def train_epoch(model, optimizer, loader):
    accuracy = Accuracy()
    for inputs, targets in loader:
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.update(logits.detach(), targets)
    return accuracy.compute()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    plots = Plots()
    sampler = DistributedSampler(plots, shuffle=False)
    loader = DataLoader(plots, batch_size=8, sampler=sampler, num_workers=1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        accuracy = train_epoch(model, optimizer, loader)
        if rank == 0:
            print("epoch", epoch, "accuracy", accuracy, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
