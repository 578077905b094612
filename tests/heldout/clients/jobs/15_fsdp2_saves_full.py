"""FSDP2, whose weights are saved as full tensors when the loss is the best so far."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Saver:
    def __init__(self, model, path):
        self.model, self.path = model, path
        self.best = None

    def full_weights(self):
        weights = {}
        for name, parameter in self.model.named_parameters():
            weights[name] = parameter.full_tensor()
        return weights

    def step(self, loss):
        if self.best is not None and loss >= self.best:
            return False
        self.best = loss
        weights = self.full_weights()
        if dist.get_rank() == 0:
            torch.save(weights, self.path)
        return True


def own_loss(rank, step):
    return [5.0, 4.0, 4.5, 3.0][step] if rank == 0 else [5.0, 4.0, 3.5, 3.0][step]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "20"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    fully_shard(model[0])
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    saver = Saver(model, "best.pt")
    for epoch in range(4):
        for _ in range(3):
            model(torch.randn(4, 8)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        saver.step(own_loss(rank, epoch))
    print("rank", rank, "done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
