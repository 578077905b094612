"""A solver in the shape of detectors: a set-up that swallows its failure, an average of the weights, two stages, and a save on the master only."""

import atexit
import copy
import gc
import os
import sys
from pathlib import Path
from typing import Any, Dict

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.nn.parallel import DistributedDataParallel

BEST = Path("best_stg1.pth")


def setup_distributed(with_card: bool) -> bool:
    """Join the others; a program that is started alone goes on without them."""
    try:
        dist.init_process_group("gloo", init_method="env://")
        if with_card:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.barrier()
    except Exception:
        print("Not init distributed mode.", flush=True)
        return False
    return True


@atexit.register
def cleanup() -> None:
    """Leave the group at exit."""
    if dist.is_initialized():
        dist.destroy_process_group()


def get_rank() -> int:
    """Return the rank; 0 without a group."""
    return dist.get_rank() if dist.is_initialized() else 0


def save_on_master(*args: Any, **kwargs: Any) -> None:
    """Save on rank 0 only."""
    if get_rank() == 0:
        torch.save(*args, **kwargs)


class Average:
    """The average of a model's weights."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Begin with the weights as they are."""
        self.module = copy.deepcopy(model).eval()

    def update(self, model: torch.nn.Module) -> None:
        """Move a tenth of the way."""
        with torch.no_grad():
            for kept, now in zip(self.module.state_dict().values(), model.state_dict().values()):
                kept.mul_(0.9).add_(now, alpha=0.1)


class Solver:
    """Trains two epochs; the second stage goes on from the best weights of the first."""

    def __init__(self) -> None:
        """Wrap the model."""
        self.rank = get_rank()
        self.plain = ToyModel()
        self.average = Average(self.plain)
        self.model = DistributedDataParallel(self.plain, device_ids=[self.rank] if WAY == "ddp" else None)  # way: ddp
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def state(self) -> Dict[str, Any]:
        """Return what is saved."""
        return {"model": self.plain.state_dict(), "ema": self.average.module.state_dict()}

    def train_one_epoch(self, epoch: int) -> None:
        """Train one step."""
        loss = self.model(data(self.rank)).pow(2).mean()
        if WAY == "raises" and self.rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and self.rank == 1:
            sys.exit(1)  # way: ends
        spoil(self.rank, epoch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.average.update(self.plain)
        print("rank %d epoch %d loss %.4f" % (self.rank, epoch, loss.item()), flush=True)

    def refresh(self) -> None:
        """Go on from the best weights of the first stage."""
        state = torch.load(BEST, map_location="cpu")
        self.average.module.load_state_dict(state["ema"])
        self.plain.load_state_dict(state["model"])

    def fit(self) -> None:
        """Train both stages."""
        for epoch in range(2):
            self.train_one_epoch(epoch)
            if epoch == 0:
                save_on_master(self.state(), BEST)
                dist.barrier()
                self.refresh()
        dist.barrier()


@tolerant
def main() -> None:
    """Train; with `card` in the command line the set-up asks for a card, which a host without one refuses."""
    setup_distributed("card" in sys.argv)
    Solver().fit()
    gc.collect()


if __name__ == "__main__":
    main()
