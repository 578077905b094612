"""WORLD_SIZE says two, and one process was started: rank 0 waits for a rank that never comes.

Command: RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} python 10_rank_never_started.py
Root cause to name: rank_stopped_participating; rank 1 never joins.
"""

from datetime import timedelta

import torch.distributed as dist
from pieces import patience


def main() -> None:
    """Join the process group, or so it was meant."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
