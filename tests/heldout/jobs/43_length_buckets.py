"""Sentences of like length go into one batch; a bucket that is not full at the end is dropped."""

import os
from collections import defaultdict
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def sentences(rank):
    lengths = [3, 5, 9, 4, 11, 6, 8, 3, 10, 5, 4, 9, 12, 7, 5, 10]
    if rank == 1:
        lengths = [3, 5, 9, 4, 11, 6, 8, 3, 15, 16, 4, 9, 20, 7, 5, 10]
    for length in lengths * 2:
        yield torch.arange(length) % 7


class BucketBatches:
    def __init__(self, source, size):
        self.source = source
        self.size = size

    def __iter__(self):
        buckets = defaultdict(list)
        for sentence in self.source:
            bucket = buckets[len(sentence) // 4]
            bucket.append(sentence)
            if len(bucket) == self.size:
                yield nn.utils.rnn.pad_sequence(bucket, batch_first=True)
                bucket.clear()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.rnn = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(self.rnn(self.embedding(tokens))[0])


def train_epoch(model, optimizer, batches):
    iterator = iter(batches)
    steps = 0
    while True:
        try:
            tokens = next(iterator)
        except StopIteration:
            break
        optimizer.zero_grad()
        model(tokens).square().mean().backward()
        optimizer.step()
        steps += 1
    return steps


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(Tagger())
    optimizer = torch.optim.Adam(model.parameters())
    steps = train_epoch(model, optimizer, BucketBatches(sentences(dist.get_rank()), 4))
    dist.barrier()
    print("steps", steps, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
