"""Rank 0 keeps the weights; the others fetch them, send gradients, and stop when they like."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

PATIENCE = timedelta(seconds=int(os.environ.get("PATIENCE", "8")))
GRADIENT, DONE = 0, 1


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 12), nn.LayerNorm(12), nn.ReLU(), nn.Linear(12, 1))


class Server:
    def __init__(self, network):
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.5)
        self.updates = 0

    def serve(self, workers):
        message = torch.empty(1 + len(parameters_to_vector(self.network.parameters())))
        while workers:
            worker = dist.recv(message)
            if int(message[0]) == DONE:
                workers.remove(worker)
                continue
            self.apply(message[1:])
            dist.send(parameters_to_vector(self.network.parameters()).detach(), worker)

    def apply(self, gradient):
        for parameter in self.network.parameters():
            part, gradient = gradient[: parameter.numel()], gradient[parameter.numel() :]
            parameter.grad = part.view_as(parameter).clone()
        self.optimizer.step()
        self.updates += 1


class Worker:
    def __init__(self, network, rank):
        self.network = network
        self.generator = torch.Generator().manual_seed(rank)

    def train(self, target, most):
        weights = parameters_to_vector(self.network.parameters()).detach()
        for _ in range(most):
            inputs = torch.randn(16, 5, generator=self.generator)
            loss = nn.functional.mse_loss(self.network(inputs), inputs.sum(1, keepdim=True))
            if loss.item() < target:
                break
            self.network.zero_grad()
            loss.backward()
            gradients = [parameter.grad.flatten() for parameter in self.network.parameters()]
            dist.send(torch.cat([torch.tensor([float(GRADIENT)]), *gradients]), 0)
            dist.recv(weights, 0)
            vector_to_parameters(weights, self.network.parameters())
        dist.send(torch.full((1 + len(weights),), float(DONE)), 0)


def main():
    dist.init_process_group("gloo", timeout=PATIENCE)
    rank, world = dist.get_rank(), dist.get_world_size()
    network = build()
    if rank == 0:
        server = Server(network)
        server.serve(set(range(1, world)))
        print("updates", server.updates, flush=True)
    else:
        Worker(network, rank).train(target=0.4 * rank, most=10 * rank)
    weights = parameters_to_vector(network.parameters()).detach()
    dist.broadcast(weights, src=0)
    vector_to_parameters(weights, network.parameters())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
