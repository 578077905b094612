"""Two ranks see one card: rank 1 asks for one that does not exist."""

import torch
import torch.distributed as dist
from stage import BACKEND, LOCAL_RANK, PATIENCE, own_card, small_model, train
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Set the card of this rank, and train."""
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    train(DistributedDataParallel(small_model().to(own_card()), device_ids=[LOCAL_RANK]), own_card())


if __name__ == "__main__":
    main()
