"""A sharded optimizer whose state goes into every second checkpoint."""

import io
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Checkpointer:
    def __init__(self, model, optimizer, every=2):
        self.model = model
        self.optimizer = optimizer
        self.every = every
        self.last = b""

    @property
    def is_main(self):
        return dist.get_rank() == 0

    def after_epoch(self, epoch):
        if self.is_main and (epoch + 1) % self.every == 0:
            self.save(epoch)

    def save(self, epoch):
        self.optimizer.consolidate_state_dict()
        state = {
            "epoch": epoch,
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self.last = buffer.getvalue()


def batches(rank, epoch):
    generator = torch.Generator().manual_seed(1000 * rank + epoch)
    for _ in range(4):
        inputs = torch.randn(8, 5, generator=generator)
        yield inputs, inputs.mean(1, keepdim=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2)
    checkpointer = Checkpointer(model, optimizer)
    for epoch in range(4):
        for inputs, targets in batches(rank, epoch):
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        checkpointer.after_epoch(epoch)
    print("rank", rank, "checkpoint of", len(checkpointer.last), "bytes", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
