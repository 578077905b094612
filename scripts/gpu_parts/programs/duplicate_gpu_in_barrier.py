"""Two ranks see one card, none chooses it, and the first collective is a barrier, for which NCCL takes a card by the rank's number."""

import torch.distributed as dist
from stage import BACKEND, PATIENCE


def main() -> None:
    """Meet before any model is there."""
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    dist.barrier()


if __name__ == "__main__":
    main()
