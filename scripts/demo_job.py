"""The job that scripts/demo runs: two ranks, gloo, three steps, one checkpoint saved and loaded."""

import gc
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)

with tempfile.TemporaryDirectory() as folder:  # One checkpoint a rank: torch.save is not atomic, so ranks share none here.
    path = os.path.join(folder, "checkpoint.pth")
    torch.save(model.module.state_dict(), path)
    model.module.load_state_dict(torch.load(path, map_location="cpu"))

# gloo on torch 2.13 may abort at the exit of the interpreter if the group, or a model that holds it, is still there.
del model, optimizer, loss
gc.collect()
dist.destroy_process_group()
