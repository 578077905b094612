"""Rank 1 meets a large sample and asks for more memory than it may have: a limit on the address space stands in for the host.

Command: torchrun --nproc_per_node=2 12_out_of_memory.py
Root cause to name: host_out_of_memory; rank 1 runs out of memory, rank 0 loses its peer.
"""

import resource
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train until rank 1 is gone."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(5, seed=rank)):
        say(rank, "step %d loss %.4f" % (step, train_step(model, optimizer, inputs, targets)))
        if rank == 1 and step == 2:
            in_use = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**28, resource.RLIM_INFINITY))
            torch.ones(2**30)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
