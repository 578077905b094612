"""Optimizes by hand, and leaves out a batch whose loss is not finite."""

import os
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, Dataset

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))


class Signals(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        signal = torch.linspace(0, 1, 6) + index / 64
        if index == 42:
            signal[3] = float("inf")  # The sensor was saturated.
        return signal


class Denoiser(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.automatic_optimization = False
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = (self.net(batch) - batch).abs().mean()
        if not torch.isfinite(loss):
            return None
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main():
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=4,
        strategy=DDPStrategy(timeout=PATIENCE, process_group_backend="gloo"),
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Denoiser(), DataLoader(Signals(), batch_size=2))


if __name__ == "__main__":
    main()
