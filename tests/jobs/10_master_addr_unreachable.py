"""MASTER_ADDR is still the 127.0.0.1 of a start script for one host: the second host looks for the master on itself, where nothing listens.

Command: RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} python 10_master_addr_unreachable.py
Root cause to name: master_addr_unreachable; rank 1 never reaches MASTER_ADDR.
"""

from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    """Join the process group, or so it was meant."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
