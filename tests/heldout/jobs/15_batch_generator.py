"""Batches come from a generator over a stream of documents."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LENGTH = 16


def documents(rank):
    lengths = [40, 33, 64, 21, 70, 48] if rank == 0 else [40, 33, 30, 21, 30, 48]
    for number, length in enumerate(lengths):
        yield [(number * 7 + index) % 50 for index in range(length)]


def token_stream(rank):
    for document in documents(rank):
        yield from document
        yield 0


def batches(rank, size=4):
    buffer, rows = [], []
    for token in token_stream(rank):
        buffer.append(token)
        if len(buffer) == LENGTH + 1:
            rows.append(torch.tensor(buffer))
            buffer = buffer[-1:]
        if len(rows) == size:
            yield torch.stack(rows)
            rows = []


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 50)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    for batch in batches(dist.get_rank()):
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    dist.barrier()
    print("steps", steps, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
