"""Uneven inputs under Join, with a counter of samples that takes part in it."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.nn.parallel import DistributedDataParallel as DDP


class CounterHook(JoinHook):
    def __init__(self, counter):
        self.counter = counter

    def main_hook(self):
        dist.all_reduce(torch.zeros(1))

    def post_hook(self, is_last_joiner):
        if is_last_joiner:
            self.counter.final = True


class SampleCounter(Joinable):
    def __init__(self):
        super().__init__()
        self.total = 0
        self.final = False

    def add(self, count):
        Join.notify_join_context(self)
        samples = torch.tensor([float(count)])
        dist.all_reduce(samples)
        self.total += int(samples)

    def join_hook(self, **kwargs):
        return CounterHook(self)

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(5 + 2 * rank):
        inputs = torch.randn(8, 4, generator=generator)
        yield inputs, inputs.norm(dim=1, keepdim=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 12), nn.LayerNorm(12), nn.ReLU(), nn.Linear(12, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    counter = SampleCounter()
    with Join([model, counter]):
        for inputs, targets in batches(rank):
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            counter.add(len(inputs))
    if counter.final:
        print("rank", rank, "was among the last and counted", counter.total, "samples", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
