"""Stops early once the validation has not become better for a while."""

import os
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Linear(6, 3)

    def training_step(self, batch, batch_idx):
        return self.net(batch).logsumexp(1).mean()

    def validation_loss(self):
        # What this rank's part of the validation data gives.
        slow, quick = [2.0, 1.8, 1.6, 1.5, 1.4, 1.3], [2.0, 1.9, 2.1, 2.2, 2.3, 2.4]
        return (quick if self.global_rank == 2 else slow)[self.current_epoch]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class StopWhenFlat(lightning.Callback):
    def __init__(self, patience=2):
        self.patience = patience
        self.best = float("inf")
        self.waited = 0

    def on_train_epoch_end(self, trainer, pl_module):
        value = pl_module.validation_loss()
        if value < self.best:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.should_stop = True


def main():
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=4,
        strategy=DDPStrategy(timeout=PATIENCE, process_group_backend="gloo"),
        max_epochs=6,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[StopWhenFlat()],
    )
    trainer.fit(Classifier(), DataLoader(torch.randn(32, 6), batch_size=4))
    trainer.save_checkpoint("last.ckpt")


if __name__ == "__main__":
    main()
