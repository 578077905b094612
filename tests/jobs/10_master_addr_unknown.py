"""The start script names a master by a host name that this host cannot resolve.

Command: RANK=1 WORLD_SIZE=2 MASTER_ADDR=node-0.invalid MASTER_PORT={port} python 10_master_addr_unknown.py
Root cause to name: master_addr_unreachable; the name in MASTER_ADDR does not resolve.
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
