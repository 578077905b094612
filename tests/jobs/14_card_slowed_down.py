"""Card 1 is too hot and lowers its clock while rank 1 works on it. Nothing fails; the vendor's tool alone shows it.

Command: torchrun --nproc_per_node=2 14_card_slowed_down.py
Root cause to name: card_slowed_down, on rank 1. A stand-in plays nvidia-smi: it shows what each rank writes of its card.
"""

import gc
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, card: torch.device) -> None:
    """Train for some seconds, as the tool is asked once a second."""
    model = DistributedDataParallel(TinyModel().to(card))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(20, seed=rank):
        train_step(model, optimizer, inputs.to(card), targets.to(card))
        time.sleep(0.5)


def main() -> None:
    """Join, train, and leave with nothing left on the card."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    why = "hw_thermal" if local_rank == 1 else "-"
    Path(os.environ["CARDS_AT"], str(local_rank)).write_text("%d 80 512 %d %s" % (local_rank, os.getpid(), why), encoding="ascii")
    dist.init_process_group("eccl", timeout=timedelta(seconds=30))
    train(dist.get_rank(), torch.device(torch_gcu.DEVICE_TYPE, local_rank))
    say(dist.get_rank(), "training finished on card %d" % torch_gcu.current_device())
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
