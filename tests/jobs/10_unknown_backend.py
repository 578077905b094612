"""The backend belongs to a vendor's plug-in that is not imported, so torch has never heard of it.

Command: torchrun --nproc_per_node=2 10_unknown_backend.py
Root cause to name: backend_not_available; nothing registers a backend named eccl.
"""

from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    """Join the process group, or so it was meant."""
    dist.init_process_group("eccl", timeout=timedelta(seconds=8))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
