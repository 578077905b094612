"""Rank 0 saves by mmengine, and rank 1 loads as soon as the file is there."""

import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from mmengine.runner import CheckpointLoader, save_checkpoint

dist.init_process_group("gloo", timeout=timedelta(seconds=8))
state = {"layer%d.weight" % number: torch.zeros(1024, 4096) for number in range(6)}
dist.barrier()
if dist.get_rank() == 0:
    save_checkpoint(state, "best.pth")
else:
    while not (Path("best.pth").exists() and Path("best.pth").stat().st_size):
        time.sleep(0.0005)
    CheckpointLoader.load_checkpoint("best.pth", map_location="cpu")
    print("loaded", flush=True)
dist.barrier()
dist.destroy_process_group()
