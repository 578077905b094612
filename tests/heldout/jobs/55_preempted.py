"""When the scheduler of the cluster wants the machine back, the job saves and ends."""

import os
import signal
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Preemption:
    def __init__(self, number):
        self.requested = False
        signal.signal(number, self.handle)

    def handle(self, number, frame):
        self.requested = True


class Run:
    def __init__(self, folder):
        self.path = os.path.join(folder, "last.pt")
        self.model = DDP(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.preemption = Preemption(signal.SIGUSR2)
        self.step = 0

    def work(self):
        self.optimizer.zero_grad()
        self.model(torch.randn(4, 6)).abs().mean().backward()
        self.optimizer.step()
        self.step += 1

    def loop(self, steps):
        while not self.preemption.requested and self.step < steps:
            if dist.get_rank() == 2 and self.step == 7:
                os.kill(os.getpid(), signal.SIGUSR2)  # The third machine is wanted back.
            self.work()
        self.save()

    def save(self):
        dist.barrier()
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), self.path)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        run.loop(20)
    print("rank", dist.get_rank(), "steps", run.step, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
