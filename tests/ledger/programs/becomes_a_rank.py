"""A rank forks; the child makes a process group of its own and so becomes a rank, with a ledger of its own."""

import os
import socket

import torch
import torch.distributed as dist


def alone() -> None:
    """Make a process group of one."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]), RANK="0", WORLD_SIZE="1")
    dist.init_process_group("gloo")


alone()
dist.barrier()
dist.destroy_process_group()  # gloo's threads do not survive a fork
child = os.fork()
if child == 0:
    alone()
    dist.all_reduce(torch.zeros(2))
    os._exit(0)
os.waitpid(child, 0)
alone()
dist.barrier()
dist.destroy_process_group()
