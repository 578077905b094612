"""A network in three stages, one on each rank; small batches go up and their gradients come down."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

ROWS, WIDTH, CHUNKS, STEPS = 4, 6, 3, 5


def first_stage(layer, optimizer, step):
    inputs = torch.randn(ROWS * CHUNKS, WIDTH, generator=torch.Generator().manual_seed(step))
    if step == 2:
        # A reading that ran out of range.
        inputs[5, 1] = float("inf")
    for chunk in inputs.split(ROWS):
        outputs = layer(chunk)
        dist.send(outputs.detach(), 1)
        gradient = torch.empty_like(outputs)
        dist.recv(gradient, 1)
        outputs.backward(gradient)
    optimizer.step()


def middle_stage(layer, optimizer, step):
    skipped = 0
    for _ in range(CHUNKS):
        inputs = torch.empty(ROWS, WIDTH)
        dist.recv(inputs, 0)
        if not torch.isfinite(inputs).all():
            skipped += 1
            continue
        inputs.requires_grad_()
        outputs = torch.relu(layer(inputs))
        dist.send(outputs.detach(), 2)
        gradient = torch.empty_like(outputs)
        dist.recv(gradient, 2)
        outputs.backward(gradient)
        dist.send(inputs.grad, 0)
    optimizer.step()
    if skipped:
        print("step", step, "left out", skipped, flush=True)


def last_stage(layer, optimizer, step):
    total = 0.0
    for _ in range(CHUNKS):
        inputs = torch.empty(ROWS, WIDTH)
        dist.recv(inputs, 1)
        inputs.requires_grad_()
        loss = layer(inputs).pow(2).mean()
        loss.backward()
        dist.send(inputs.grad, 1)
        total += loss.item()
    optimizer.step()
    print("step", step, "loss", total / CHUNKS, flush=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    stage = (first_stage, middle_stage, last_stage)[rank]
    layer = nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        stage(layer, optimizer, step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
