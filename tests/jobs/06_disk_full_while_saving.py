"""mmengine saves a checkpoint where no byte can be written any more: /dev/full answers as a full disk does.

Command: torchrun --nproc_per_node=2 06_disk_full_while_saving.py
Root cause to name: disk_full, on rank 0; rank 1 waits at the barrier and fails later.
"""

from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from mmengine.runner import save_checkpoint
from pieces import TinyModel, say


def main() -> None:
    """Save where there is no room."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    if rank == 0:
        Path("epoch_1.pth").symlink_to("/dev/full")
        say(rank, "Saving checkpoint at 1 epochs")
        save_checkpoint({"state_dict": TinyModel().state_dict(), "meta": {"epoch": 1}}, "epoch_1.pth")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
