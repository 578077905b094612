"""The card is chosen in a class, the model keeps its place on the CPU, and the call names its argument module."""

import os
from datetime import timedelta

import torch.distributed as dist
import torch_gcu
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel as Parallel


class DDP(Parallel):
    """A wrapper of the project's own."""


class Experiment:
    """Holds the network."""

    def __init__(self, card: int) -> None:
        """Wrap a network that nobody has moved."""
        torch_gcu.set_device(card)
        self.net = TinyModel()
        self.wrapped = DDP(
            module=self.net,
            device_ids=[card],
        )


if __name__ == "__main__":
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    Experiment(int(os.environ["LOCAL_RANK"]))
    print("wrapped", flush=True)
    dist.destroy_process_group()
