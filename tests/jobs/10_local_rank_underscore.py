"""The program knows the option --local_rank only, and torch.distributed.launch of torch 2.0 passes --local-rank.

Command: python -m torch.distributed.launch --nproc_per_node=2 10_local_rank_underscore.py
Root cause to name: launcher_arg_spelling, on every rank; both spellings have to be accepted, or LOCAL_RANK read.
"""

import argparse
from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    """Parse the options of old, join, leave."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0, help="set by torch.distributed.launch")
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    dist.barrier()
    print("local rank %d trains %d epochs" % (args.local_rank, args.epochs), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
