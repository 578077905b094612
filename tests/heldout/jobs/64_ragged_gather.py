"""Gathers captions and features of different sizes from all ranks; some have none."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


def captions(rank, round_number):
    words = ["a dog", "two cats on a sofa", "nobody", "rain"]
    if rank == 2 and round_number == 1:
        return []
    return [words[(rank + number) % 4] for number in range(rank + round_number + 1)]


def gather_ragged(rows):
    """Return the rows of all ranks; they are padded to the largest number for the way."""
    counts = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(rows)]))
    largest = max(count.item() for count in counts)
    if largest == 0:
        return rows
    padded = F.pad(rows, (0, 0, 0, largest - len(rows)))
    parts = [torch.zeros_like(padded) for _ in counts]
    dist.all_gather(parts, padded)
    return torch.cat([part[: count.item()] for part, count in zip(parts, counts)])


def embed(model, texts):
    if not texts:
        return torch.zeros(0, 3)
    sizes = torch.tensor([[float(len(text)), float(text.count(" "))] for text in texts])
    with torch.no_grad():
        return model(sizes)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Linear(2, 3)
    for round_number in range(3):
        own = captions(rank, round_number)
        features = gather_ragged(embed(model, own))
        everyone = [None] * world if rank == 0 else None
        dist.gather_object(own, everyone, dst=0)
        if everyone is not None:
            texts = [text for part in everyone for text in part]
            print("round", round_number, "captions", len(texts), "features", len(features), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
