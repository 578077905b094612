"""Writes pictures of some predictions; what goes wrong there shall not end the training."""

import logging
import os
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))
log = logging.getLogger(__name__)


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class Pictures(lightning.Callback):
    def __init__(self, every=4):
        self.every = every

    def draw(self, rows, rank):
        low, high = rows.min(), rows.max()
        if rank == 1:
            high = low  # All values of its picture are equal.
        if high == low:
            raise ValueError("cannot scale an empty range")
        return (rows - low) / (high - low)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if (batch_idx + 1) % self.every:
            return
        try:
            picture = self.draw(batch, trainer.global_rank)
            pictures = pl_module.all_gather(picture)
            torch.save(pictures, "pictures-%d.pt" % trainer.global_rank)
        except ValueError:
            log.warning("no picture of batch %d", batch_idx)


def main():
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(timeout=PATIENCE, process_group_backend="gloo"),
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Pictures()],
    )
    trainer.fit(Regression(), DataLoader(torch.randn(64, 5), batch_size=4))


if __name__ == "__main__":
    main()
