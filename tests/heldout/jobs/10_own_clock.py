"""Logs the mean loss every so many seconds."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def prepare_cache():
    time.sleep(2.0)  # Tokenizes the corpus once; the others read the result.


class Trainer:
    def __init__(self, model, every=6.0):
        self.every = every
        self.last_logged = time.monotonic()
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.losses = []

    def log(self):
        mean = torch.tensor(self.losses).mean()
        dist.barrier()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print("mean loss", mean.item() / dist.get_world_size(), flush=True)
        self.losses.clear()
        self.last_logged = time.monotonic()

    def run(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = self.model(torch.randn(4, 9)).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
            time.sleep(0.05)
            if time.monotonic() - self.last_logged > self.every:
                self.log()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 1)))
    if dist.get_rank() == 0:
        prepare_cache()
    Trainer(model).run(200)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
