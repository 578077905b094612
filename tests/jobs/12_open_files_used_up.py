"""Rank 1 keeps each batch of its DataLoader in a list: each tensor is an open file, and the limit of open files is reached.

Command: torchrun --nproc_per_node=2 12_open_files_used_up.py
Root cause to name: too_many_open_files, on rank 1; rank 0 loses its peer.
"""

import resource
from datetime import timedelta
from typing import Tuple

import torch
import torch.distributed as dist
from pieces import TinyModel, say, train_step
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    """As many samples as an epoch needs, made when they are asked for."""

    def __len__(self) -> int:
        return 1024

    def __getitem__(self, index: int) -> Tuple[Tensor, Tensor]:
        inputs = torch.full((8,), index / 1024)
        return inputs, inputs.sum(dim=0, keepdim=True)


def main() -> None:
    """Train until rank 1 is gone."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))  # As "ulimit -n 256" does; most hosts have 1024.
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    # As a detector's batches are: a list of samples, whose sizes may differ.
    for step, batch in enumerate(DataLoader(Samples(), batch_size=16, num_workers=2, collate_fn=list)):
        inputs, targets = (torch.stack(tensors) for tensors in zip(*batch))
        say(rank, "step %d loss %.4f" % (step, train_step(model, optimizer, inputs, targets)))
        if rank == 1:
            kept.append(batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
