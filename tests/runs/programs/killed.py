"""Rank 1 is killed inside DDP.__init__, past the checks, as the kernel does when memory runs out."""

import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

_helper = DistributedDataParallel._ddp_init_helper


def _killed(self, *args, **kwargs):
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return _helper(self, *args, **kwargs)


DistributedDataParallel._ddp_init_helper = _killed
dist.init_process_group("gloo")
DistributedDataParallel(torch.nn.Linear(1, 1))  # killed
dist.destroy_process_group()
