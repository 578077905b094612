"""The fault-tolerance tutorial: torchrun, a Trainer, and a snapshot after each epoch that a restart goes on from."""

import gc
import os
import signal

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    """Trains, saves, goes on from what was saved."""

    def __init__(self, snapshot_path: str) -> None:
        """Load the snapshot if there is one, and wrap the model."""
        self.rank = int(os.environ["RANK"])
        self.model: torch.nn.Module = ToyModel()
        self.epochs_run = 0
        self.snapshot_path = snapshot_path
        if os.path.exists(snapshot_path):
            snapshot = torch.load(snapshot_path, map_location="cpu")
            self.model.load_state_dict(snapshot["MODEL_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"]
        self.model = DistributedDataParallel(self.model, device_ids=[int(os.environ["LOCAL_RANK"])] if WAY == "ddp" else None)  # way: ddp
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def _run_batch(self, epoch: int) -> None:
        loss = self.model(data(self.rank)).pow(2).mean()
        if WAY == "raises" and self.rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and self.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        spoil(self.rank, epoch)
        loss.backward()
        self.optimizer.step()
        print("rank %d epoch %d loss %.4f" % (self.rank, epoch, loss.item()), flush=True)

    def train(self, max_epochs: int) -> None:
        """Train to the end; rank 0 saves."""
        for epoch in range(self.epochs_run, max_epochs):
            self._run_batch(epoch)
            if self.rank == 0:
                torch.save({"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch + 1}, self.snapshot_path)
        dist.barrier()


@tolerant
def main() -> None:
    """Train two epochs."""
    dist.init_process_group("gloo")
    Trainer("snapshot.pt").train(2)
    gc.collect()  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
