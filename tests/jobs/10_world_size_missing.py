"""A start script of one's own sets RANK and the master's address and forgets WORLD_SIZE.

Command: RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} python 10_world_size_missing.py
Root cause to name: launcher_env_missing; WORLD_SIZE is not set.
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
