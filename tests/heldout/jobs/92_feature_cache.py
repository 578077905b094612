"""Features are extracted once into files, then a head is trained on them."""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LIMIT = 30_000


class FeatureCache:
    def __init__(self, folder):
        self.folder = folder
        self.parts = []
        self.held = 0
        self.files = []

    def add(self, features):
        self.parts.append(features)
        self.held += features.numel() * features.element_size()
        if self.held > LIMIT:
            self.flush()

    def flush(self):
        path = os.path.join(self.folder, "part%d.pt" % len(self.files))
        torch.save(torch.cat(self.parts), path)
        self.files.append(path)
        self.parts, self.held = [], 0
        dist.barrier()  # Everybody's part is on the disk.

    def rows(self):
        if self.parts:
            self.flush()
        return torch.cat([torch.load(path) for path in self.files])


def clips(rank):
    generator = torch.Generator().manual_seed(rank)
    for number in range(10):
        frames = 40 if rank == 2 and number % 2 else 20
        yield torch.randn(frames, 24, generator=generator)


@torch.no_grad()
def extract(backbone, rank):
    cache = FeatureCache(tempfile.mkdtemp())
    backbone.eval()
    for clip in clips(rank):
        cache.add(backbone(clip))
    return cache.rows()


def train_head(rows, rank):
    head = DDP(nn.Sequential(nn.BatchNorm1d(32), nn.Linear(32, 4)))
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    for batch in rows[:192].split(32):
        loss = nn.functional.cross_entropy(head(batch), batch[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print("loss of the head", loss.item(), flush=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(24, 32), nn.BatchNorm1d(32), nn.ReLU())
    rows = extract(backbone, rank)
    train_head(rows, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
