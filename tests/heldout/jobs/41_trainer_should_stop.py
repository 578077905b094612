"""A trainer with callbacks and a control object, as the large libraries have it."""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Control:
    should_stop: bool = False
    should_save: bool = False


class TrainerCallback:
    def on_step_end(self, trainer, control, **kwargs):
        pass

    def on_evaluate(self, trainer, control, metrics, **kwargs):
        pass


class TargetReached(TrainerCallback):
    def __init__(self, target):
        self.target = target

    def on_evaluate(self, trainer, control, metrics, **kwargs):
        if metrics["eval_loss"] <= self.target:
            control.should_stop = True


class Trainer:
    def __init__(self, model, rank, callbacks):
        self.rank = rank
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.callbacks = callbacks
        self.control = Control()
        self.global_step = 0

    def call_event(self, event, **kwargs):
        for callback in self.callbacks:
            getattr(callback, event)(self, self.control, **kwargs)

    def training_step(self, batch):
        self.model.train()
        loss = self.model(batch).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.global_step += 1

    def evaluate(self):
        losses = [0.9, 0.5, 0.3, 0.2] if self.rank == 2 else [0.9, 0.7, 0.6, 0.5]
        metrics = {"eval_loss": losses[min(3, self.global_step // 5 - 1)]}
        self.call_event("on_evaluate", metrics=metrics)
        return metrics

    def train(self, max_steps):
        while self.global_step < max_steps:
            self.training_step(torch.randn(4, 6))
            self.call_event("on_step_end")
            if self.global_step % 5 == 0:
                self.evaluate()
            if self.control.should_stop:
                break
        return self.finish()

    def finish(self):
        steps = torch.tensor(self.global_step)
        dist.all_reduce(steps, op=dist.ReduceOp.MAX)
        return steps.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))
    trainer = Trainer(model, dist.get_rank(), [TrainerCallback(), TargetReached(0.5)])
    print("steps", trainer.train(20), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
