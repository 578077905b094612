"""Mixed precision by hand: the scale falls after an overflow, and the norm is reduced before each step."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Scaler:
    def __init__(self, scale=1024.0):
        self.scale = scale
        self.good_steps = 0

    def overflowed(self, parameters):
        return any(not torch.isfinite(parameter.grad).all() for parameter in parameters)

    def update(self, overflow):
        if overflow:
            self.scale /= 2
            self.good_steps = 0
        else:
            self.good_steps += 1


class Optimizer:
    def __init__(self, model, scaler, lr=0.01):
        self.model = model
        self.scaler = scaler
        self.lr = lr

    def global_norm(self):
        squares = torch.zeros(1)
        for parameter in self.model.parameters():
            squares += parameter.grad.pow(2).sum()
        dist.all_reduce(squares)
        return squares.sqrt()

    def step(self):
        overflow = self.scaler.overflowed(self.model.parameters())
        self.scaler.update(overflow)
        if overflow:
            return False
        norm = self.global_norm()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter -= self.lr * parameter.grad / self.scaler.scale / norm.clamp(min=1)
        return True


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = Optimizer(model, Scaler())
    for step in range(12):
        inputs = torch.randn(2, 4)
        if rank == 0 and step == 7:
            inputs *= 1e38
        model.zero_grad()
        (model(inputs).pow(2).mean() * optimizer.scaler.scale).backward()
        optimizer.step()
    dist.barrier()
    print("scale", optimizer.scaler.scale, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
