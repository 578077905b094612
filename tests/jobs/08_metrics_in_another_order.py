"""Rank 1 reduces its accuracy before its loss, because it has seen no loss yet; nothing fails, and both numbers are sums of both.

Command: torchrun --nproc_per_node=3 08_metrics_in_another_order.py
Root cause to name: rank_divergent_control_flow; at numbers 2 and 3 of the group the ranks reduce at two lines in another order.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Sum two metrics over the ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    loss, accuracy = torch.tensor([1.0]), torch.tensor([100.0])
    dist.all_reduce(torch.tensor([float(rank)]))

    def sum_loss() -> None:
        dist.all_reduce(loss)

    def sum_accuracy() -> None:
        dist.all_reduce(accuracy)

    waiting = [sum_loss, sum_accuracy]
    if rank == 1:
        waiting.reverse()
    for reduce in waiting:
        reduce()
    say(rank, "loss %.0f accuracy %.0f" % (loss.item(), accuracy.item()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
