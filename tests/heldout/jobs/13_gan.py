"""A small GAN: the generator learns only if the discriminator is good enough."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    discriminator = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
    return DDP(generator), DDP(discriminator, broadcast_buffers=False)


def discriminator_step(generator, discriminator, optimizer, real):
    with torch.no_grad():
        fake = generator.module(torch.randn(len(real), 4))
    scores = discriminator(torch.cat([real, fake]))
    labels = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
    loss = F.binary_cross_entropy_with_logits(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def generator_step(generator, discriminator, optimizer, count):
    scores = discriminator.module(generator(torch.randn(count, 4)))
    loss = F.binary_cross_entropy_with_logits(scores, torch.ones(count, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def real_batch(rank, step):
    # The fourth rank's data comes from another camera from step 6 on.
    contrast = 2000.0 if rank == 3 and step >= 6 else 1.0
    return torch.randn(8, 2) * contrast


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(5)
    generator, discriminator = build()
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
    for step in range(20):
        d_loss = discriminator_step(generator, discriminator, d_optimizer, real_batch(rank, step))
        if d_loss < 1.5:
            generator_step(generator, discriminator, g_optimizer, 8)
    print("rank", rank, "done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
