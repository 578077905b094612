"""RPC by hand: worker 1 asks worker 0 for each step, and worker 0 only serves."""

import os

import torch
from pieces import WAY, data, spoil, tolerant
from torch import Tensor
from torch.distributed import rpc


def step_of(batch: Tensor) -> Tensor:
    """Do the step on the server; in one way of breaking, with a shape that does not fit."""
    return batch.sum(dim=1) @ torch.ones(9 if WAY == "ddp" else 8)  # way: ddp


@tolerant
def main() -> None:
    """Make two steps."""
    rank = int(os.environ["RANK"])
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=2)
    if rank == 1:
        for step in range(2):
            loss = rpc.rpc_sync("worker0", step_of, args=(data(step),))  # way: ddp
            spoil(rank, step)
            print("step %d loss %.4f" % (step, loss.item()), flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    main()
