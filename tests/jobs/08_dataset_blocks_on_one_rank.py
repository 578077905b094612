"""The dataset of rank 1 opens a pipe into which nobody writes: its DataLoader gives no batch, and the other ranks wait in the next step.

Command: torchrun --nproc_per_node=3 08_dataset_blocks_on_one_rank.py WORKERS
Root cause to name: rank_stopped_participating; rank 1 waits for data, at the line of the dataset if there are no workers.
"""

import ctypes
import os
import sys
from datetime import timedelta
from typing import Tuple

import torch
import torch.distributed as dist
from pieces import TinyModel, patience, say, train_step
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    """Samples, of which one comes from elsewhere."""

    def __init__(self, rank: int) -> None:
        """Know whose samples these are."""
        self.rank = rank

    def __len__(self) -> int:
        """Answer how many samples there are."""
        return 24

    def __getitem__(self, index: int) -> Tuple[Tensor, Tensor]:
        """Answer one sample."""
        if self.rank == 1 and index == 13:
            os.mkfifo("shard.fifo")
            with open("shard.fifo", "rb") as stream:  # waits for a writer
                stream.read()
        return torch.ones(8) * index, torch.ones(1)


def end_with_the_rank(worker: int) -> None:
    """Let a worker not outlive its rank, so that nothing of the job stays."""
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


def main() -> None:
    """Train until one rank has no more data."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = DataLoader(Shards(rank), batch_size=4, num_workers=int(sys.argv[1]), worker_init_fn=end_with_the_rank)
    for step, (inputs, targets) in enumerate(loader):
        train_step(model, optimizer, inputs, targets)
        dist.all_reduce(torch.ones(1))
        say(rank, "step %d" % step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
