"""GLOO_SOCKET_IFNAME was copied from another cluster: this host has no interface of that name.

Command: GLOO_SOCKET_IFNAME=ib9 torchrun --nproc_per_node=2 10_wrong_interface.py
Root cause to name: wrong_network_interface; GLOO_SOCKET_IFNAME names an interface that does not exist.
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
