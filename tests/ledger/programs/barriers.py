"""Two ranks: barriers of two groups, a slow collective, a slow wait, and calls that raise."""

import contextlib
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
tensor = torch.zeros(4)
for _ in range(205):
    dist.barrier()
dist.monitored_barrier()
pair = dist.new_group([0, 1])
dist.barrier(group=pair)
for _ in range(20):
    with contextlib.suppress(TypeError, RuntimeError):
        dist.all_reduce("not a tensor")
dist.barrier()
time.sleep(0.8 * rank)
dist.all_reduce(tensor)
dist.barrier()
time.sleep(0.8 * rank)
dist.all_reduce(tensor, async_op=True).wait()
dist.all_reduce(tensor)
with contextlib.suppress(Exception):
    dist.barrier(group="not a group")
dist.barrier()
dist.destroy_process_group()
