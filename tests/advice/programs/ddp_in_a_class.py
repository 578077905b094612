"""DDP in a class, over several lines: no variable is called model, device or local_rank."""

import os
from datetime import timedelta

import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


class Experiment:
    """Holds what others keep in variables."""

    def __init__(self) -> None:
        """Wrap a model that stays on the CPU."""
        self.gpu = int(os.environ["LOCAL_RANK"])
        self.net = TinyModel()
        self.wrapped = DistributedDataParallel(
            self.net,
            device_ids=[self.gpu],
            output_device=self.gpu,  # where the outputs are
            broadcast_buffers=False,
        )


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    Experiment()
    print("wrapped", flush=True)
    dist.destroy_process_group()
