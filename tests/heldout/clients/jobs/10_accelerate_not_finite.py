"""Leaves out the batches whose loss is not finite."""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader


def main():
    patience = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=patience)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.randn(64, 6)
    rows[36:40] = float("nan")
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(rows, batch_size=4))
    skipped = 0
    for batch in loader:
        loss = model(batch).pow(2).mean()
        if torch.isnan(loss):
            skipped += 1
            continue
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    print("skipped", accelerator.gather(torch.tensor([skipped])).sum().item(), flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
