"""FSDP2 under torchrun: each layer and the model are sharded over the ranks."""

import gc
import os

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.distributed.fsdp import fully_shard


@tolerant
def main() -> None:
    """Train two steps."""
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    mesh = dist.device_mesh.init_device_mesh("cpu", (3 if WAY == "ddp" else 2,))  # way: ddp
    model = ToyModel()
    fully_shard(model.net1, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
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
