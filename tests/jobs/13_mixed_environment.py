"""The login script of rank 1's host exports TORCH_DISTRIBUTED_DEBUG=DETAIL: its torch makes further process groups, and waits there alone.

Command: torchrun --nproc_per_node=2 --no_python bash 13_debug_on_rank1.sh python 13_mixed_environment.py
Root cause to name: env_var_skew; TORCH_DISTRIBUTED_DEBUG differs between the ranks.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Join and reduce."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    loss = torch.tensor([0.5])
    dist.all_reduce(loss)
    say(rank, "loss %.4f" % loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
