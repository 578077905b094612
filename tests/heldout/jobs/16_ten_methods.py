"""An experiment as a class; evaluation passes through many small methods."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Experiment:
    def __init__(self, rank):
        self.rank = rank
        self.model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loss = 0.0
        self.scores = []

    def train_step(self):
        loss = self.model(torch.randn(4, 4)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.loss = loss.item() + (5.0 if self.rank == 2 else 0.0)

    def run(self, steps):
        for step in range(steps):
            self.train_step()
            if self.is_promising(step):
                self.evaluate()

    def is_promising(self, step):
        return step % 4 == 3 and self.loss < 3.0

    def evaluate(self):
        self.prepare()
        self.evaluate_all()

    def prepare(self):
        self.model.eval()

    def evaluate_all(self):
        for name in ("clean", "noisy"):
            self.evaluate_split(name)
        self.finish()

    def evaluate_split(self, name):
        inputs = self.inputs_of(name)
        self.record(name, self.score(inputs))

    def inputs_of(self, name):
        return torch.randn(8, 4) * (2.0 if name == "noisy" else 1.0)

    def score(self, inputs):
        with torch.no_grad():
            return self.model.module(inputs).pow(2).mean()

    def record(self, name, value):
        self.scores.append((name, self.combine(value)))

    def combine(self, value):
        return self.average(value.clone()).item()

    def average(self, value):
        return self.reduced(value) / dist.get_world_size()

    def reduced(self, value):
        dist.all_reduce(value)
        return value

    def finish(self):
        self.model.train()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    Experiment(dist.get_rank()).run(16)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
