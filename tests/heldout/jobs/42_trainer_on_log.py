"""A trainer whose callbacks are told of spikes in the loss."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Callback:
    def on_log(self, trainer, logs):
        pass

    def on_train_end(self, trainer):
        pass


class SpikeReporter(Callback):
    def __init__(self, factor=5.0):
        self.factor = factor
        self.usual = None
        self.reports = []

    def on_log(self, trainer, logs):
        loss = logs["loss"]
        usual, self.usual = self.usual, loss if self.usual is None else 0.9 * self.usual + 0.1 * loss
        if usual is None or loss <= self.factor * usual:
            return
        self.report(trainer.step, loss)

    def report(self, step, loss):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, {"step": step, "loss": loss})
        self.reports.append(everyone)


class CallbackHandler(Callback):
    def __init__(self, callbacks):
        self.callbacks = callbacks

    def call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(*args)

    def on_log(self, trainer, logs):
        self.call("on_log", trainer, logs)

    def on_train_end(self, trainer):
        self.call("on_train_end", trainer)


class Trainer:
    def __init__(self, model, data, callbacks):
        self.model = DDP(model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.data = data
        self.handler = CallbackHandler(callbacks)
        self.step = 0

    def train(self):
        for batch in self.data:
            loss = self.model(batch).abs().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            if self.step % 2 == 0:
                self.handler.on_log(self, {"loss": loss.item(), "step": self.step})
        self.handler.on_train_end(self)


def dataset(rank):
    torch.manual_seed(rank)
    data = list(torch.randn(16, 4, 6))
    if rank == 3:
        data[9] = data[9] * 200
    return data


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1))
    Trainer(model, dataset(dist.get_rank()), [Callback(), SpikeReporter()]).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
