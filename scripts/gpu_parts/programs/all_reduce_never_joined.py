"""Rank 1 waits for something else while rank 0 sums: with NCCL the all_reduce returns, and rank 0 hangs in synchronize."""

import time

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, LOCAL_RANK, PATIENCE, own_card


def total(value: float) -> float:
    """Sum over all ranks; the copy to the host waits for the card."""
    tensor = torch.tensor([value], device=own_card())
    dist.all_reduce(tensor)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return tensor.item()


def main() -> None:
    """Meet once, which makes NCCL's communicator, then part."""
    if DEVICE == "cuda":
        torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    total(1.0)
    if dist.get_rank() == 1:
        time.sleep(90)
    total(2.0)


if __name__ == "__main__":
    main()
