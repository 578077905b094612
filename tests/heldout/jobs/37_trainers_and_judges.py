"""Two ranks train, two score what they produce; each pair has a group of its own."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

TRAINERS, JUDGES = [0, 1], [2, 3]


def train(rank, group):
    model = DDP(nn.Linear(4, 2), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reward = torch.zeros(1)
    for _ in range(8):
        output = model(torch.randn(3, 4))
        dist.send(output.detach(), dst=rank + 2)
        dist.recv(reward, src=rank + 2)
        optimizer.zero_grad()
        (output.mean() * reward).backward()
        optimizer.step()
    dist.barrier()


def judge(rank, group):
    output = torch.zeros(3, 2)
    scores = []
    for number in range(8):
        dist.recv(output, src=rank - 2)
        score = output.abs().mean().view(1)
        dist.send(score, dst=rank - 2)
        if number % 3 == 0:
            dist.all_reduce(score, group=group)
            scores.append(score.item())
    if rank == 2:
        print("scores", len(scores), flush=True)
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    trainers, judges = dist.new_group(TRAINERS), dist.new_group(JUDGES)
    if rank in TRAINERS:
        train(rank, trainers)
    else:
        judge(rank, judges)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
