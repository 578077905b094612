"""DeepSpeed's engine with gloo on the CPU, under torchrun."""

import os
import sys

import deepspeed
import torch
from pieces import WAY, ToyModel, data, spoil, tolerant

CONFIG = {"train_batch_size": 17 if WAY == "ddp" else 16, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # DeepSpeed would compile its shared-memory collectives at the first use.


@tolerant
def main() -> None:
    """Train two steps."""
    deepspeed.init_distributed("gloo", verbose=False)
    rank = int(os.environ["RANK"])
    model = ToyModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)  # way: ddp
    for step in range(2):
        loss = engine(data(rank)).pow(2).mean()
        if WAY == "raises" and rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and rank == 1:
            sys.exit(1)  # way: ends
        spoil(rank, step)
        engine.backward(loss)
        engine.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    deepspeed.comm.destroy_process_group()


if __name__ == "__main__":
    main()
