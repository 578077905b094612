"""Gradients are accumulated until so many tokens have been seen."""

import os
from contextlib import ExitStack
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

BUDGET = 100


def documents(rank):
    lengths = [60, 50, 30, 80, 40, 20, 50, 70, 90, 20]
    if rank == 1:
        lengths = [60, 50, 30, 80, 70, 40, 50, 70, 90, 20]
    for length in lengths:
        yield torch.arange(length) % 11


class TokenCounter:
    def __init__(self, budget):
        self.budget = budget
        self.tokens = 0

    def add(self, count):
        self.tokens += count

    @property
    def full(self):
        return self.tokens >= self.budget

    def clear(self):
        self.tokens = 0


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    counter = TokenCounter(BUDGET)
    updates = 0
    for document in documents(rank):
        counter.add(len(document))
        with ExitStack() as stack:
            if not counter.full:
                stack.enter_context(model.no_sync())
            logits = model(document[:-1])
            loss = nn.functional.cross_entropy(logits, document[1:], reduction="sum")
            (loss / BUDGET).backward()
        if counter.full:
            optimizer.step()
            optimizer.zero_grad()
            counter.clear()
            updates += 1
    dist.barrier()
    print("rank", rank, "updates", updates, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
