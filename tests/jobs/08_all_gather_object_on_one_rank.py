"""Only rank 1 met a broken image, and it gathers the names of broken images from all ranks: nobody else calls that.

Command: torchrun --nproc_per_node=3 08_all_gather_object_on_one_rank.py
Root cause to name: rank_divergent_control_flow; rank 1 is in all_gather_object, and the others are at the barrier.
"""

from datetime import timedelta

import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Report what could not be read, and meet."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    broken = ["000042.png"] if rank == 1 else []
    if broken:
        names = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(names, broken)
        say(rank, "broken images: %s" % names)
    dist.barrier()
    say(rank, "epoch finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
