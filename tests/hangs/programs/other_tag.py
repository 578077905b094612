"""Rank 0 sends with one tag, and rank 1 receives with another one."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.send(torch.ones(4), 1, tag=0)
else:
    dist.recv(torch.ones(4), 0, tag=7)
