"""Each rank reads its own files, and the Trainer validates after each epoch."""

import os
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))
ROWS = (26, 26, 24, 26)  # In the files of each rank.


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 1))

    def train_dataloader(self):
        return DataLoader(torch.randn(ROWS[self.global_rank], 5), batch_size=2)

    def val_dataloader(self):
        return DataLoader(torch.randn(8, 5), batch_size=2)

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.net(batch).pow(2).mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=4,
        strategy=DDPStrategy(timeout=PATIENCE, process_group_backend="gloo"),
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
    )
    trainer.fit(Regression())


if __name__ == "__main__":
    main()
