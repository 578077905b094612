"""Tensor parallelism under torchrun: the first layer split by columns, the second one by rows."""

import gc
import os

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


@tolerant
def main() -> None:
    """Train two steps."""
    mesh = dist.device_mesh.init_device_mesh("cpu", (3 if WAY == "ddp" else 2,))  # way: ddp
    rank = int(os.environ["RANK"])
    model = parallelize_module(ToyModel(), mesh, {"net1": ColwiseParallel(), "net2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    for step in range(2):
        loss = model(data(0)).pow(2).mean()
        spoil(rank, step)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    del model, optimizer, loss
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
