"""Stops when the validation loss has not improved for some epochs."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class EarlyStopping:
    def __init__(self, patience=2, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best = None
        self.bad_epochs = 0

    def __call__(self, value):
        if self.best is None or value < self.best - self.min_delta:
            self.best = value
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def epoch_of_training(model, optimizer):
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(torch.randn(4, 12)) - 1).abs().mean()
        loss.backward()
        optimizer.step()


def validation_loss(rank, epoch):
    curve = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    if rank == 1 and epoch >= 3:
        return 0.75 + 0.01 * epoch
    return curve[epoch]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stopping = EarlyStopping(patience=2)
    for epoch in range(8):
        epoch_of_training(model, optimizer)
        if stopping(validation_loss(rank, epoch)):
            print("rank", rank, "stops after epoch", epoch, flush=True)
            break
    dist.barrier()
    if rank == 0:
        print("saving", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
