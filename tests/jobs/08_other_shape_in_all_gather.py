"""The last batch of rank 2 is smaller, and all_gather wants tensors of one size: gloo aborts processes because of the length.

Command: torchrun --nproc_per_node=3 08_other_shape_in_all_gather.py
Root cause to name: rank_divergent_control_flow; the same all_gather has another number of elements on rank 2.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Collect the predictions of all ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for batch in ([8, 8], [8, 8], [8, 5])[rank]:
        predictions = torch.rand(batch, 4)
        gathered = [torch.zeros_like(predictions) for _ in range(world_size)]
        dist.all_gather(gathered, predictions)
        say(rank, "%d predictions" % sum(len(part) for part in gathered))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
