"""Saves on rank 0, and stops when all ranks agree."""

import os
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 1))

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.net(batch).pow(2).mean() + self.global_rank, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class KeepWeights(lightning.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            torch.save(pl_module.state_dict(), "weights.pt")
        trainer.strategy.barrier()


def main():
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(timeout=PATIENCE, process_group_backend="gloo"),
        max_epochs=6,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[EarlyStopping("val_loss", min_delta=10.0, patience=2), KeepWeights()],
    )
    trainer.fit(Regression(), DataLoader(torch.randn(32, 5), batch_size=4), DataLoader(torch.randn(16, 5), batch_size=4))


if __name__ == "__main__":
    main()
