"""Contrastive learning; the loss is chosen by name from the settings of the host."""

import configparser
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LOSSES = {}


def register(name):
    def add(function):
        LOSSES[name] = function
        return function

    return add


def similarity_loss(queries, keys, offset=0):
    logits = F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).t() / 0.1
    return F.cross_entropy(logits, torch.arange(len(queries)) + offset)


@register("local")
def local_loss(queries, keys):
    return similarity_loss(queries, keys)


@register("global")
def global_loss(queries, keys):
    parts = [torch.zeros_like(keys) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, keys.detach())
    return similarity_loss(queries, torch.cat(parts), offset=dist.get_rank() * len(queries))


def read_settings(rank):
    settings = configparser.ConfigParser()
    settings.read_string("[train]\nloss = global\nsteps = 9\n")
    if rank == 1:
        settings.read_string("[train]\nloss = local\n")  # Left from a test on one card.
    return settings["train"]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    settings = read_settings(dist.get_rank())
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = LOSSES[settings["loss"]]
    for _ in range(settings.getint("steps")):
        views = torch.randn(8, 6)
        queries, keys = model(views), model.module(views + 0.1 * torch.randn(8, 6))
        loss = criterion(queries, keys)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
