"""Two ranks: rank 1 stops itself by SIGSTOP before a collective that rank 0 is in already; both end well once somebody lets it go on."""

import os
import signal

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
tensor = torch.zeros(4)
dist.all_reduce(tensor)
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
dist.all_reduce(tensor)
dist.destroy_process_group()
