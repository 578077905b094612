"""Each process streams its own shards, so that the loader is not prepared."""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SHARDS = [8, 8, 8, 8, 8, 8, 8, 5]  # Rows; the last one is shorter.


class Shards(IterableDataset):
    def __init__(self, rank, world):
        self.sizes = SHARDS[rank::world]

    def __iter__(self):
        for size in self.sizes:
            yield from torch.randn(size, 6)


def main():
    patience = timedelta(seconds=int(os.environ.get("PATIENCE", "20")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=patience)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer = accelerator.prepare(model, optimizer)
    loader = DataLoader(Shards(accelerator.process_index, accelerator.num_processes), batch_size=2, drop_last=True)
    total = torch.zeros(())
    for batch in loader:
        loss = model(batch).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
    accelerator.print("loss", accelerator.reduce(total).item())
    accelerator.end_training()


if __name__ == "__main__":
    main()
