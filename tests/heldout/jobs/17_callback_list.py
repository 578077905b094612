"""A loop with callbacks; what is logged is the main rank's business."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Callback:
    def on_step_end(self, state):
        pass

    def on_epoch_end(self, state):
        pass


class LearningRate(Callback):
    def on_epoch_end(self, state):
        for group in state["optimizer"].param_groups:
            group["lr"] *= 0.9


class MeanLoss(Callback):
    def __init__(self):
        self.values = []

    def on_step_end(self, state):
        self.values.append(state["loss"])

    def on_epoch_end(self, state):
        mean = torch.tensor(self.values).mean()
        dist.all_reduce(mean, op=dist.ReduceOp.MAX)
        print("epoch", state["epoch"], "worst mean loss", mean.item(), flush=True)
        self.values.clear()


def fit(model, optimizer, callbacks, epochs):
    state = {"optimizer": optimizer}
    for epoch in range(epochs):
        state["epoch"] = epoch
        for _ in range(6):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 5)).abs().mean()
            loss.backward()
            optimizer.step()
            state["loss"] = loss.item()
            for callback in callbacks:
                callback.on_step_end(state)
        for callback in callbacks:
            callback.on_epoch_end(state)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Linear(5, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callbacks = [LearningRate()]
    if dist.get_rank() == 0:
        callbacks.append(MeanLoss())
    fit(model, optimizer, callbacks, epochs=3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
