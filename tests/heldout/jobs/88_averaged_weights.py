"""Averages the weights of the last epochs, and measures the batch norms anew for them."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


class WeightAverage:
    def __init__(self, model, loader, first_epoch):
        self.model = model
        self.loader = loader
        self.first_epoch = first_epoch
        self.averaged = AveragedModel(model.module)

    def on_epoch_end(self, epoch):
        if epoch >= self.first_epoch:
            self.averaged.update_parameters(self.model.module)

    def on_fit_end(self):
        self.model.module.load_state_dict(self.averaged.module.state_dict())
        if dist.get_rank() == 0:
            print("measuring the batch norms for", int(self.averaged.n_averaged), "epochs", flush=True)
            update_bn(self.loader, self.model)


def make_loader(rank):
    inputs = torch.randn(96, 5, generator=torch.Generator().manual_seed(rank))
    return DataLoader(TensorDataset(inputs, inputs[:, :2].argmax(1)), batch_size=16, shuffle=True)


@torch.no_grad()
def accuracy(network, loader):
    network.eval()
    counts = torch.zeros(2)
    for inputs, labels in loader:
        counts += torch.tensor([(network(inputs).argmax(1) == labels).sum(), len(labels)])
    dist.all_reduce(counts)
    network.train()
    return (counts[0] / counts[1]).item()


def fit(model, loader, callbacks, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for callback in callbacks:
            callback.on_epoch_end(epoch)
    for callback in callbacks:
        callback.on_fit_end()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    loader = make_loader(rank)
    model = DDP(nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 2)))
    fit(model, loader, [WeightAverage(model, loader, first_epoch=2)], epochs=4)
    score = accuracy(model.module, loader)
    if rank == 0:
        print("accuracy", score, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
