"""Rank 1 is killed with SIGKILL in the middle of training, as the kernel does when the host's memory is used up.

Command: torchrun --nproc_per_node=2 12_killed_by_sigkill.py
Root cause to name: rank_stopped_participating; rank 1 ends by SIGKILL without a last word, rank 0 loses its peer.
"""

import os
import signal
from datetime import timedelta

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
            os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
