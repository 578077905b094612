"""A pipeline of two stages, each on two ranks; a stage shares its gradients in a group of its own."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "8")))
BATCHES = 8


class Front(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU())


class Back(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 2))


class Stage:
    def __init__(self, module, group, partner):
        self.module = module
        self.group = group
        self.partner = partner
        self.optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def update(self):
        for parameter in self.module.parameters():
            dist.all_reduce(parameter.grad, group=self.group)
            parameter.grad /= dist.get_world_size(self.group)
        self.optimizer.step()
        self.optimizer.zero_grad()


class First(Stage):
    def run(self, inputs, labels):
        hidden = self.module.net(inputs)
        dist.send(hidden.detach(), self.partner)
        dist.send(labels, self.partner)
        gradient = torch.empty_like(hidden)
        dist.recv(gradient, self.partner)
        hidden.backward(gradient)
        self.update()


class Second(Stage):
    def run(self, size):
        hidden = torch.empty(size, 12)
        labels = torch.empty(size, dtype=torch.int64)
        dist.recv(hidden, self.partner)
        dist.recv(labels, self.partner)
        hidden.requires_grad_()
        loss = nn.functional.cross_entropy(self.module.net(hidden), labels)
        loss.backward()
        dist.send(hidden.grad, self.partner)
        self.update()
        return loss.detach()


def main():
    dist.init_process_group("gloo", timeout=PATIENCE)
    rank = dist.get_rank()
    groups = [dist.new_group([0, 1], timeout=PATIENCE), dist.new_group([2, 3], timeout=PATIENCE)]
    torch.manual_seed(0)
    if rank < 2:
        stage = First(Front(), groups[0], rank + 2)
        generator = torch.Generator().manual_seed(rank)
        for _ in range(BATCHES):
            inputs = torch.randn(16, 6, generator=generator)
            stage.run(inputs, (inputs.sum(1) > 0).long())
    else:
        stage = Second(Back(), groups[1], rank - 2)
        for _ in range(BATCHES):
            loss = stage.run(16)
        dist.all_reduce(loss, group=groups[1])
        print("rank", rank, "loss", loss.item() / 2, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
