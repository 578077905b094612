"""Nobody calls set_device and the device has no number: both ranks are on card 0, and NCCL refuses that."""

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, PATIENCE, small_model, train
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train on whatever card is the current one."""
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    card = torch.device(DEVICE)
    train(DistributedDataParallel(small_model().to(card)), card)


if __name__ == "__main__":
    main()
