"""Saves a checkpoint every few steps and tells everybody its name."""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Checkpointer:
    def __init__(self, folder, every):
        self.folder = folder
        self.every = every
        self.latest = None

    def save(self, model, step):
        self.latest = os.path.join(self.folder, "step%04d.pt" % step)
        torch.save(model.module.state_dict(), self.latest)
        self.announce()

    def announce(self):
        names = [self.latest]
        dist.broadcast_object_list(names, src=0)
        self.latest = names[0]

    def step(self, model, step):
        if step % self.every == 0 and dist.get_rank() == 0:
            self.save(model, step)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(nn.Linear(10, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tempfile.TemporaryDirectory() as folder:
        checkpointer = Checkpointer(folder, every=5)
        for step in range(1, 13):
            optimizer.zero_grad()
            model(torch.randn(4, 10)).square().mean().backward()
            optimizer.step()
            checkpointer.step(model, step)
        dist.barrier()
    print("latest", checkpointer.latest, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
