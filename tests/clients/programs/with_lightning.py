"""A LightningModule and Trainer.fit, under the strategy and on the number of hosts that the command line names."""

import os
import sys
import time

if os.environ.get("WAY") == "imports" and os.environ.get("LOCAL_RANK") == "1":
    time.sleep(12)  # What is imported before torch.

import lightning
import torch
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch import Tensor
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    """The model, its step and its optimizer."""

    def __init__(self) -> None:
        """Build it."""
        super().__init__()
        self.model = ToyModel(unused=WAY == "ddp")

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        """Answer the loss."""
        loss = self.model(batch).pow(2).mean()
        if WAY == "goes_on":
            time.sleep(0.1)
        if WAY == "raises" and self.global_rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and self.global_rank == 1:
            sys.exit(1)  # way: ends
        spoil(self.global_rank, index)
        print("rank %d step %d loss %.4f" % (self.global_rank, index, loss.item()), flush=True)
        return loss

    def validation_step(self, batch: Tensor, index: int) -> None:
        """Evaluate; in one way, rank 0 takes long."""
        if WAY == "evaluates" and self.global_rank == 0 and index == 0:
            time.sleep(12)
        self.log("loss", self.model(batch).pow(2).mean(), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return one."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


@tolerant
def main() -> None:
    """Train one epoch."""
    hosts = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2 // hosts,
        num_nodes=hosts,
        strategy=sys.argv[1],
        max_epochs=-1 if WAY in ("evaluates", "goes_on") else 1,
        max_time={"seconds": int(float(os.environ.get("SECONDS", "60")))} if WAY in ("evaluates", "goes_on") else None,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = DataLoader(torch.cat([data(0), data(1)]), batch_size=4)
    trainer.fit(Module(), batches, batches if WAY == "evaluates" else None)  # way: ddp


if __name__ == "__main__":
    main()
