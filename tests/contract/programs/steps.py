"""Two ranks that reduce and train on a small model for some seconds, and print a loss that depends on every step."""

import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(7)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total, end = torch.zeros(1), time.monotonic() + float(sys.argv[1])
steps = 300
for step in range(steps):
    batch = torch.full((4, 8), 0.01 * (step % 10) + 0.1 * dist.get_rank())
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
    dist.all_reduce(total)
    total /= 2
    if not step % 50:
        torch.save({"step": step}, "rank%d.pth" % dist.get_rank())
    time.sleep(max(0.0, end - time.monotonic()) / (steps - step))
if dist.get_rank() == 0:
    print("loss %.6f" % total.item(), os.path.exists("rank0.pth"), flush=True)
dist.destroy_process_group()
