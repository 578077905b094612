"""The parameters are on the rank's card, and device_ids names its neighbour's: the wrap succeeds, the first step fails."""

import torch
import torch.distributed as dist
from stage import BACKEND, LOCAL_RANK, PATIENCE, own_card, small_model, train
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap with the wrong number, and train."""
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    train(DistributedDataParallel(small_model().to(own_card()), device_ids=[1 - LOCAL_RANK]), own_card())


if __name__ == "__main__":
    main()
