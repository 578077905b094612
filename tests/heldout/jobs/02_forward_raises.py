"""Trains a classifier with batch norm; a batch that cannot be used is logged and passed over."""

import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("train")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        features = F.relu(self.norm(self.conv(images)))
        return self.head(features.mean((2, 3)))


def batches(rank, count):
    generator = torch.Generator().manual_seed(100 + rank)
    for index in range(count):
        channels = 1 if rank == 2 and index == 5 else 3  # A grey picture among coloured ones.
        yield torch.randn(4, channels, 16, 16, generator=generator), torch.randint(0, 4, (4,), generator=generator)


def train(model, optimizer, data):
    skipped = 0
    for images, labels in data:
        optimizer.zero_grad()
        try:
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
        except RuntimeError as exc:
            skipped += 1
            log.debug("batch skipped: %s", exc)
            continue
        optimizer.step()
    return skipped


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    skipped = train(model, optimizer, batches(dist.get_rank(), 20))
    print("done, skipped", skipped, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
