"""A training function of two ranks, for whatever starts functions: an actor of Ray, a worker of joblib, a cell of a notebook."""

import gc

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.nn.parallel import DistributedDataParallel


@tolerant
def train(rank: int, port: str) -> float:
    """Train two steps, and return the loss."""
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%s" % port, rank=rank, world_size=2)
    model = DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        spoil(rank, step)
        loss.backward()
        optimizer.step()
    last = loss.item()
    del model, optimizer, loss
    gc.collect()
    dist.destroy_process_group()
    return last
