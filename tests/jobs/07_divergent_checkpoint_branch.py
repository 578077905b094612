"""At stop_epoch the best checkpoint is loaded again to refresh the EMA, and each rank decides from its own state whether that epoch has come.

Rank 1 loads and waits at the barrier of load_resume_state, which nobody else calls; rank 0 trains on and waits in the gradients' all-reduce.

Command: torchrun --nproc_per_node=2 07_divergent_checkpoint_branch.py
Root cause to name: rank_divergent_control_flow; a branch on per-rank state leads into a collective.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, patience, say, train_step
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def load_resume_state(model: nn.Module, path: str) -> None:
    """Load a checkpoint once everybody is there."""
    dist.barrier()
    model.load_state_dict(torch.load(path, map_location="cpu"))


def main() -> None:
    """Train for three epochs and refresh at the one that the rank's own loader names."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if rank == 0:
        torch.save(model.module.state_dict(), "best_stg1.pth")
    dist.barrier()
    stop_epoch = 3 - rank  # Counted from the rank's own number of batches.
    for epoch in range(1, 4):
        if epoch == stop_epoch:
            say(rank, "Refresh EMA at epoch %d" % epoch)
            load_resume_state(model.module, "best_stg1.pth")
        for inputs, targets in batches(2, seed=rank):
            loss = train_step(model, optimizer, inputs, targets)
        say(rank, "Epoch: [%d] loss: %.4f" % (epoch, loss))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
