"""The backend stands in a dictionary of settings, and a class makes the group with keywords over several lines."""

import os

import torch.distributed as dist

SETTINGS = {"dist": {"backend": "nccl", "init_method": "env://"}}


class Cluster:
    """Holds the group."""

    def __init__(self, backend: str, init_method: str) -> None:
        """Join the others."""
        dist.init_process_group(
            backend=backend,
            init_method=init_method,
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
        )


if __name__ == "__main__":
    Cluster(**SETTINGS["dist"])
    dist.barrier()
    print("joined", flush=True)
    dist.destroy_process_group()
