"""Evaluates several tasks in random order."""

import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Suite:
    def __init__(self, model):
        self.model = model
        self.results = {}

    def reading(self):
        score = self.model(torch.ones(2, 4)).mean().detach()
        dist.all_reduce(score)
        self.results["reading"] = score.item()

    def writing(self):
        score = self.model(torch.zeros(2, 4)).mean().detach()
        dist.all_reduce(score)
        self.results["writing"] = score.item()

    def counting(self):
        score = self.model(torch.arange(8.0).view(2, 4)).mean().detach()
        dist.all_reduce(score)
        self.results["counting"] = score.item()

    def run(self):
        tasks = [self.reading, self.writing, self.counting]
        random.shuffle(tasks)
        for task in tasks:
            task()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    random.seed(rank)
    suite = Suite(nn.Linear(4, 1))
    for _ in range(3):
        suite.run()
    dist.barrier()
    print("rank", rank, suite.results, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
