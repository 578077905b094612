"""A solver whose set-up swallows that there is no card, and whose rank 0 waits for the others under an `if` that they do not take."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def setup_distributed() -> None:
    """Join the others, and go on if the card is refused."""
    try:
        dist.init_process_group("gloo")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    except Exception:
        print("Not init distributed mode.", flush=True)


def main() -> None:
    """Train, and stop at the third step."""
    setup_distributed()
    model = DistributedDataParallel(nn.Linear(4, 4))
    for step in range(8):
        model(torch.ones(1, 4)).sum().backward()
        if step == 2 and dist.get_rank() == 0:
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
