"""mpi4py tells the rank and passes on the port; torch trains over gloo."""

import gc
import os

import torch
import torch.distributed as dist
from mpi4py import MPI
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.nn.parallel import DistributedDataParallel


@tolerant
def main() -> None:
    """Train two steps."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    port = comm.bcast(os.environ["PORT"] if rank == 0 else None)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%s" % port, rank=rank, world_size=size)
    model = DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        spoil(rank, step)
        loss.backward()
        optimizer.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    del model, optimizer, loss
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
