"""Pipeline parallelism under torchrun: two stages, two microbatches a step."""

import gc
import os

import torch
import torch.distributed as dist
from pieces import WAY, data, spoil, tolerant
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


@tolerant
def main() -> None:
    """Train two steps."""
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    layer = nn.Linear(10, 10)
    stage = PipelineStage(layer, rank, 3 if WAY == "ddp" and rank else 2, torch.device("cpu"))  # way: ddp
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda out, target: (out - target).pow(2).mean())
    for step in range(2):
        spoil(rank, step)
        losses: list = []
        if rank == 0:
            schedule.step(data(0))
        else:
            schedule.step(target=data(1), losses=losses)  # way: ddp
        print("rank %d step %d losses %d" % (rank, step, len(losses)), flush=True)
    del stage, schedule, layer
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
