"""Keeps the best checkpoint, from a callback of the Trainer."""

import os
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class KeepBest(lightning.Callback):
    def __init__(self, every=3):
        self.every = every
        self.best = float("inf")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if (batch_idx + 1) % self.every:
            return
        loss = outputs["loss"].item()
        if trainer.is_global_zero and loss < self.best:
            self.best = loss
            trainer.save_checkpoint("best.ckpt")


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
        callbacks=[KeepBest()],
    )
    trainer.fit(Regression(), DataLoader(torch.randn(64, 6), batch_size=4))


if __name__ == "__main__":
    main()
