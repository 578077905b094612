"""Four ranks whose calls differ by design, and that meet all the same: unlike_and_healthy.py [PART…], without a name all parts in turn.

The part `left`, which runs only if it is named, is wrong: rank 2 skips a backward pass.
"""

import contextlib
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

RANKS = 4


def loader_of(rows):
    """Return a DataLoader of as many rows, four a batch, the last one smaller."""
    return DataLoader(TensorDataset(torch.randn(rows, 6)), batch_size=4)


def join(rank):
    """Train with loaders of different length, under Join and under a model's own join."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 1)))
    shards = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.01)
    with Join([model, shards]):
        for (batch,) in loader_of(16 + 8 * rank):
            shards.zero_grad()
            model(batch).pow(2).mean().backward()
            shards.step()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with model.join():
        for (batch,) in loader_of(40 - 8 * rank):
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()


def pipeline(rank):
    """Send batches through four stages and their gradients back; the first and the last stage have other calls than those between."""
    stage = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    for _ in range(6):
        held = []
        for _ in range(3):
            inputs = torch.randn(4, 6)
            if rank:
                dist.recv(inputs, src=rank - 1)
            inputs.requires_grad_()
            outputs = stage(inputs)
            held.append((inputs, outputs))
            if rank < RANKS - 1:
                dist.send(outputs.detach(), dst=rank + 1)
        works = []
        for inputs, outputs in held:
            gradient = torch.ones(4, 6)
            if rank < RANKS - 1:
                dist.irecv(gradient, src=rank + 1).wait()
            outputs.backward(gradient)
            if rank:
                works.append((dist.isend(inputs.grad, dst=rank - 1), inputs))
        for work, _ in works:
            work.wait()
        optimizer.step()


def experts(rank):
    """Exchange unequal numbers of tokens within pairs of experts, and reduce across the pairs."""
    pairs = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
    across = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])]
    mine, other = pairs[rank // 2], across[rank % 2]
    expert = nn.Linear(6, 6)
    for step in range(8):
        sent = torch.tensor([1 + (step + rank) % 3, 1 + step % 2])
        taken = torch.zeros_like(sent)
        dist.all_to_all_single(taken, sent, group=mine)
        tokens = torch.zeros(int(taken.sum()), 6)
        dist.all_to_all_single(tokens, torch.randn(int(sent.sum()), 6), taken.tolist(), sent.tolist(), group=mine)
        if rank // 2 == step % 2:
            dist.all_reduce(tokens.sum(), group=mine)
        expert(tokens).sum().backward()
        for parameter in expert.parameters():
            dist.all_reduce(parameter.grad, group=other)
        expert.zero_grad()


def last_steps(rank):
    """Ranks with fewer batches go on with batches of zeros; gradients are exchanged every third batch, and after the last."""
    model = DistributedDataParallel(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(loader_of(22 + 3 * rank))
    for number in range(1, 9):
        batch = next(batches, None)
        exchanges = number % 3 == 0 or number == 8
        inputs = torch.zeros(1, 6) if batch is None else batch[0]
        with contextlib.nullcontext() if exchanges else model.no_sync():
            if batch is None:
                (model(inputs).sum() * 0).backward()
            else:
                model(inputs).pow(2).mean().backward()
        if exchanges:
            optimizer.step()
            optimizer.zero_grad()


def roles(rank):
    """Rank 0 decides and the others follow; two ranks evaluate in a group of their own while the others wait."""
    judges = dist.new_group([2, 3])
    for step in range(5):
        if rank == 0:
            plan = [step, "go on"]
            dist.broadcast_object_list(plan, src=0)
        else:
            plan = [None, None]
            dist.broadcast_object_list(plan, src=0)
        score = torch.tensor([float(rank)])
        if rank in (2, 3):
            dist.all_reduce(score, group=judges)
        if rank == 0:
            scores = [torch.zeros(1) for _ in range(RANKS)]
            dist.gather(score, scores, dst=0)
        else:
            dist.gather(score, dst=0)
    dist.barrier()


def left(rank):
    """Leave a step on rank 2."""
    model = DistributedDataParallel(nn.Linear(6, 1))
    for number in range(6):
        loss = model(torch.randn(4, 6)).pow(2).mean()
        if rank == 2 and number == 3:
            continue
        loss.backward()


PARTS = {"join": join, "pipeline": pipeline, "experts": experts, "last_steps": last_steps, "roles": roles}


def main():
    """Run the parts that are named, or all."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=8 if "left" in sys.argv else 120))
    for name in sys.argv[1:] or PARTS:
        part = left if name == "left" else PARTS[name]
        part(dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
