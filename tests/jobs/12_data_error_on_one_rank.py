"""A file is missing in rank 1's share of the dataset: rank 1 raises, the others lose their peer.

Command: torchrun --nproc_per_node=2 12_data_error_on_one_rank.py
Root cause to name: rank_stopped_participating; the first failure is the FileNotFoundError of rank 1, everything after it follows from it.
"""

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
            Path("data/train/000042.png").read_bytes()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
