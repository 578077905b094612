"""A monitor of the training whose parts hand on what they are told."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Monitor:
    def __init__(self, limit):
        self.limit = limit
        self.pending = []

    def observe(self, step, loss):
        self.pending.append((step, loss))
        if loss > self.limit:
            self.alarm(step)

    def alarm(self, step):
        self.describe(step, "the loss is high")

    def describe(self, step, text):
        self.annotate({"step": step, "text": text})

    def annotate(self, note):
        note["pending"] = len(self.pending)
        self.enqueue(note)

    def enqueue(self, note):
        self.flush([note])

    def flush(self, notes):
        self.publish(notes, where="console")

    def publish(self, notes, where):
        self.serialize([dict(note, where=where) for note in notes])

    def serialize(self, notes):
        self.send(["%(step)d: %(text)s" % note for note in notes])

    def send(self, lines):
        self.collect("\n".join(lines))

    def collect(self, text):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, text)
        self.show(everyone)

    def show(self, everyone):
        if dist.get_rank() == 0:
            print("\n".join(everyone), flush=True)


class Training:
    def __init__(self, rank):
        torch.manual_seed(0)
        self.rank = rank
        self.model = DDP(nn.Linear(4, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.monitor = Monitor(limit=50.0)

    def batch(self, step):
        scale = 40.0 if self.rank == 1 and step == 5 else 1.0
        return torch.ones(3, 4) * scale

    def run(self, steps):
        for step in range(steps):
            loss = self.model(self.batch(step)).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.monitor.observe(step, loss.item())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "20"))))
    Training(dist.get_rank()).run(12)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
