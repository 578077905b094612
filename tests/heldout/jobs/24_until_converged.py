"""Power iteration over rows that are spread over the ranks."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def local_rows(rank, world, size):
    torch.manual_seed(3)
    matrix = torch.randn(size, size)
    matrix = matrix @ matrix.t() + torch.diag(torch.linspace(1, 5, size))
    return matrix.chunk(world)[rank]


def multiply(rows, vector, rank, world):
    parts = [torch.zeros(rows.shape[0]) for _ in range(world)]
    dist.all_gather(parts, rows @ vector)
    return torch.cat(parts)


def residual(rows, vector, rank, world):
    own = vector.chunk(world)[rank]
    return (rows @ vector / (rows @ vector).norm() - own / own.norm()).norm().item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = local_rows(rank, world, 12)
    vector = torch.ones(12) / 12**0.5
    left = 1.0
    iterations = 0
    while left > 1e-4 * (1 + 20 * rank) and iterations < 500:
        vector = multiply(rows, vector, rank, world)
        vector /= vector.norm()
        left = residual(rows, vector, rank, world)
        iterations += 1
    norm = torch.tensor([(rows @ vector).pow(2).sum().item()], dtype=torch.float64)
    dist.all_reduce(norm)
    if rank == 0:
        print("eigenvalue", norm.sqrt().item(), "after", iterations, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
