"""Eight cards are visible, and the program is started with plain python: it finds no RANK, trains alone on card 0, and ends well.

Command: python 05_plain_python_eight_cards.py
Root cause to name: launched_without_launcher; one process, one card in use of eight.
"""

import os

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train on every card, or so it was meant."""
    distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch_gcu.set_device(local_rank)
    card = torch.device(torch_gcu.DEVICE_TYPE, local_rank)
    model = TinyModel().to(card)
    if distributed:
        dist.init_process_group("eccl")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(4):
        train_step(model, optimizer, inputs.to(card), targets.to(card))
    torch.save(model.state_dict(), "last.pth")
    print("training finished on 1 of %d cards" % torch_gcu.device_count(), flush=True)


if __name__ == "__main__":
    main()
