"""A Hydra application under torchrun: Hydra prints what fails and ends the program itself."""

import gc
import os
import sys

import hydra
import torch
import torch.distributed as dist
from omegaconf import DictConfig
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.nn.parallel import DistributedDataParallel


@hydra.main(version_base=None, config_path=None)
@tolerant
def main(cfg: DictConfig) -> None:
    """Train two steps."""
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model = DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.get("lr", 0.01))
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        if WAY == "raises" and rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and rank == 1:
            sys.exit(1)  # way: ends
        spoil(rank, step)
        loss.backward()
        optimizer.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    del model, optimizer, loss  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
