"""A thread reads ahead; the end of the data is announced by None."""

import json
import os
import queue
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def lines(rank):
    for number in range(14):
        text = json.dumps({"values": [number, rank, 1.0]})
        yield text[:-4] if (rank, number) == (0, 9) else text


class Prefetcher(threading.Thread):
    def __init__(self, source, ahead=3):
        super().__init__(daemon=True)
        self.source = source
        self.ready = queue.Queue(maxsize=ahead)
        self.failure = None

    def run(self):
        try:
            for line in self.source:
                values = json.loads(line)["values"]
                self.ready.put(torch.tensor(values).repeat(4, 1))
        except ValueError as exc:
            self.failure = exc
        finally:
            self.ready.put(None)


def train(model, optimizer, prefetcher):
    seen = 0
    for batch in iter(prefetcher.ready.get, None):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        seen += len(batch)
    return seen


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    prefetcher = Prefetcher(lines(rank))
    prefetcher.start()
    seen = train(model, optimizer, prefetcher)
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, seen)
    print("rank", rank, "samples", counts, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
