"""Logs how large the weights are."""

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
        self.net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))

    def training_step(self, batch, batch_idx):
        loss = self.net(batch).pow(2).mean()
        self.log("loss", loss)
        if batch_idx == 4 and self.trainer.is_global_zero:
            norm = torch.stack([weight.norm() for weight in self.parameters()]).norm()
            self.log("norm", norm, on_step=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


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
    )
    trainer.fit(Regression(), DataLoader(torch.randn(64, 5), batch_size=4))


if __name__ == "__main__":
    main()
