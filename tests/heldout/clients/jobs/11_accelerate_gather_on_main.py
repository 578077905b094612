"""Gathers the predictions of the evaluation, and prints how good they are."""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader


def evaluate(accelerator, model, loader):
    model.eval()
    right, seen = 0, 0
    for batch in loader:
        with torch.no_grad():
            scores = model(batch)
        if accelerator.is_main_process:
            scores = accelerator.gather_for_metrics(scores)
            right += (scores > 0).sum().item()
            seen += len(scores)
    model.train()
    return right / max(seen, 1)


def main():
    patience = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=patience)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train, val = DataLoader(torch.randn(64, 6), batch_size=4), DataLoader(torch.randn(16, 6), batch_size=4)
    model, optimizer, train, val = accelerator.prepare(model, optimizer, train, val)
    for epoch in range(3):
        for batch in train:
            loss = model(batch).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print("epoch", epoch, evaluate(accelerator, model, val))
    accelerator.end_training()


if __name__ == "__main__":
    main()
