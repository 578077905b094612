"""Rank 0 reads the settings and the weights; the others receive them."""

import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def settings(rank):
    if rank == 0:
        values = [{"lr": 0.1, "steps": 5, "seed": random.randrange(1000)}]
        dist.broadcast_object_list(values, src=0)
    else:
        values = [None]
        dist.broadcast_object_list(values, src=0)
    return values[0]


def share_weights(model, rank):
    for parameter in model.parameters():
        if rank == 0:
            nn.init.normal_(parameter)
            dist.broadcast(parameter.data, src=0)
        else:
            dist.broadcast(parameter.data, src=0)


def collect(value, rank, world):
    if rank == 0:
        parts = [torch.zeros(1) for _ in range(world)]
        dist.gather(value, parts, dst=0)
        return torch.cat(parts).mean().item()
    dist.gather(value, dst=0)
    return None


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank, world = dist.get_rank(), dist.get_world_size()
    config = settings(rank)
    model = nn.Linear(3, 1)
    share_weights(model, rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for _ in range(config["steps"]):
        loss = model(torch.ones(2, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = collect(loss.detach().view(1), rank, world)
        if rank == 0:
            print("loss", mean, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
