"""Batches of a fixed number of tokens, made by generators that feed each other."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def lengths(rank, world):
    texts = [5] * 13 + [30] + [5] * 10  # One text was not split.
    yield from texts[rank::world]


def texts_of(found, width):
    for length in found:
        yield torch.ones(length, width)


def packed(texts, budget):
    rows, count = [], 0
    for text in texts:
        if count + len(text) > budget:
            yield torch.cat(rows)
            rows, count = [], 0
        rows.append(text)
        count += len(text)
        if len(text) > budget:
            return


def validate(model, rank):
    with torch.no_grad():
        error = model.module(torch.ones(3, 4)).mean()
    dist.all_reduce(error)
    return error.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "20"))))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in packed(texts_of(lengths(rank, world), 4), budget=14):
        model(batch).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("rank", rank, "validation", validate(model, rank), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
