"""Trains a network with batch norm on four ranks and evaluates after each epoch."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def build_model():
    return nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = total = 0
    for inputs, labels in loader:
        output = model(inputs)
        correct += (output.argmax(1) == labels).sum().item()
        total += len(labels)
    return correct / total


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    train_set = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64,)))
    val_set = TensorDataset(torch.randn(32, 10), torch.randint(0, 2, (32,)))
    model = DDP(build_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        train_one_epoch(model, DataLoader(train_set, batch_size=8, shuffle=True), optimizer, criterion)
        if rank == 0:
            accuracy = evaluate(model, DataLoader(val_set, batch_size=8))
            print("epoch", epoch, "accuracy", accuracy, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
