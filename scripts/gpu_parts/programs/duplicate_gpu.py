"""Two ranks see one card, and take it in turn by LOCAL_RANK modulo the number of cards: NCCL refuses two ranks on one card."""

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, LOCAL_RANK, PATIENCE, small_model, train
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Share a card."""
    number = LOCAL_RANK % torch.cuda.device_count()
    torch.cuda.set_device(number)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    card = torch.device(DEVICE, number)
    train(DistributedDataParallel(small_model().to(card), device_ids=[number]), card)


if __name__ == "__main__":
    main()
