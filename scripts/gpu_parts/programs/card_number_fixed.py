"""The card's number is written into the program: both ranks are on card 0, and NCCL refuses that."""

import torch
import torch.distributed as dist
from stage import BACKEND, PATIENCE, small_model, train
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train on card 0, whichever rank this is."""
    torch.cuda.set_device(0)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    train(DistributedDataParallel(small_model().to("cuda:0"), device_ids=[0]), torch.device("cuda:0"))


if __name__ == "__main__":
    main()
