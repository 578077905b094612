"""Trains a small model over two ranks until the file `enough` is there, for at least some steps; prints the loss of a fixed step."""

import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train and end."""
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step, over = 0, torch.zeros(1)
    while over.item() == 0:
        loss = model(torch.ones(64, 256)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 20 and dist.get_rank() == 0:
            print("loss %.12f" % loss.item(), flush=True)
        over.fill_(float(step >= 20 and os.path.exists("enough")))
        dist.all_reduce(over, dist.ReduceOp.MIN)
    dist.barrier()
    del loss, model, optimizer
    gc.collect()
    dist.destroy_process_group()
    os._exit(0)  # torch 2.13 may abort a rank at its exit, more often on a busy machine.


if __name__ == "__main__":
    main()
