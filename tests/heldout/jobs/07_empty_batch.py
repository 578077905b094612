"""A collate function that drops broken samples, and a loop that passes over empty batches."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 40

    def __getitem__(self, index):
        if self.rank == 3 and 12 <= index < 16:
            return None  # Truncated file.
        return torch.full((6,), float(index)), index % 2


def collate(samples):
    samples = [sample for sample in samples if sample is not None]
    if not samples:
        return None
    return torch.stack([sample[0] for sample in samples]), torch.tensor([sample[1] for sample in samples])


def train(model, loader, optimizer):
    running = 0.0
    for number, batch in enumerate(loader):
        if batch is None:
            continue
        features, labels = batch
        loss = nn.functional.cross_entropy(model(features / 40), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if number % 5 == 0 and dist.get_rank() == 0:
            print("batch", number, "loss", running / (number + 1), flush=True)
    return running


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(Pictures(dist.get_rank()), batch_size=4, collate_fn=collate)
    total = torch.tensor([train(model, loader, optimizer)], dtype=torch.float64)
    dist.reduce(total, 0)
    if dist.get_rank() == 0:
        print("total", total.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
