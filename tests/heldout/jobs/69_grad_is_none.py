"""Two tasks on one trunk, without DDP: the gradients are averaged by hand after each backward pass."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

TASKS = ("depth", "normal")


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(10, 3) for name in TASKS})

    def forward(self, inputs, name):
        return self.heads[name](self.trunk(inputs))


def broadcast_weights(model):
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


def average_gradients(model):
    size = dist.get_world_size()
    for parameter in model.parameters():
        if parameter.grad is None:
            continue
        dist.all_reduce(parameter.grad)
        parameter.grad /= size


class Feed:
    def __init__(self, rank):
        self.rank = rank
        self.generator = torch.Generator().manual_seed(rank)

    def __call__(self, step):
        name = TASKS[(step + self.rank) % len(TASKS)]
        inputs = torch.randn(8, 6, generator=self.generator)
        targets = inputs[:, :3] if name == "depth" else -inputs[:, 3:]
        return name, inputs, targets


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = MultiTask()
    broadcast_weights(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    feed = Feed(rank)
    for step in range(10):
        name, inputs, targets = feed(step)
        loss = nn.functional.mse_loss(model(inputs, name), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(model)
        optimizer.step()
    print("rank", rank, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
