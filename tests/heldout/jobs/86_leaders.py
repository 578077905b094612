"""Two ranks on each of two machines: weights are averaged on a machine often, between the machines seldom."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "8")))
PER_MACHINE = 2


class Machines:
    def __init__(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        firsts = range(0, world, PER_MACHINE)
        for first in firsts:
            group = dist.new_group(list(range(first, first + PER_MACHINE)), timeout=PATIENCE)
            if first <= rank < first + PER_MACHINE:
                self.group, self.leader = group, first
        self.leaders = dist.new_group(list(firsts), timeout=PATIENCE)
        self.leads = rank == self.leader
        self.count = len(firsts)

    @torch.no_grad()
    def average(self, network):
        for tensor in network.parameters():
            if self.leads:
                dist.all_reduce(tensor, group=self.leaders)
                tensor /= self.count
            dist.broadcast(tensor, src=self.leader, group=self.group)


def main():
    dist.init_process_group("gloo", timeout=PATIENCE)
    rank = dist.get_rank()
    machines = Machines()
    torch.manual_seed(machines.leader)
    network = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
    model = DDP(network, process_group=machines.group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for step in range(1, 13):
        inputs = torch.randn(8, 5, generator=generator)
        loss = nn.functional.mse_loss(model(inputs), inputs.mean(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            machines.average(network)
    if machines.leads:
        total = loss.detach().clone()
        dist.all_reduce(total, group=machines.leaders)
        print("rank", rank, "loss of the leaders", total.item() / machines.count, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
