"""Stands for the process of a Ray Train worker: its path, what Ray 2.60 sets in it before it calls init_process_group, and how it ends.

An exception of the training function ends up in the driver's output, and the worker waits to be killed, as it does after a training that went well.
"""

import gc
import os
import sys
import traceback

import torch.distributed as dist

sys.path.insert(0, os.getcwd())
from with_ray import train_loop


def main() -> None:
    """Train as the rank that the last argument names."""
    rank = int(sys.argv[-1].rpartition("=")[2])
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["PORT"]}
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "NODE_RANK": 0}
    os.environ.update(address, **{name: str(value) for name, value in place.items()})
    dist.init_process_group(backend="gloo", init_method="env://", rank=rank, world_size=2)
    try:
        train_loop(rank)
    except Exception:
        traceback.print_exc(file=sys.stdout)
    gc.collect()
    dist.destroy_process_group()
    sys.stdout.flush()
    os.close(1)  # The driver has the whole answer.
    sys.stdin.read()


if __name__ == "__main__":
    main()
