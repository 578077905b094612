"""Clips with pictures, some of them with sound."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.ReLU())
        self.sound = nn.Sequential(nn.Linear(3, 12), nn.Tanh())
        self.head = nn.Linear(12, 4)

    def forward(self, picture, sound, has_sound):
        hidden = self.picture(picture)
        if has_sound.any():
            hidden = hidden + self.sound(sound) * has_sound[:, None]
        return self.head(hidden)


def clips(rank):
    generator = torch.Generator().manual_seed(7 + rank)
    for step in range(8):
        picture = torch.randn(6, 8, generator=generator)
        sound = torch.randn(6, 3, generator=generator)
        has_sound = torch.ones(6)
        has_sound[step % 6] = 0
        if rank == 1 and step == 4:
            has_sound.zero_()
        yield picture, sound * has_sound[:, None], has_sound, picture[:, :4].argmax(1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TwoTowers())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for picture, sound, has_sound, labels in clips(rank):
        logits = model(picture, sound, has_sound)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("rank", rank, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
