"""What the programs here have in common: how this start is broken, and a model for it."""

import functools
import gc
import logging
import os
import signal
import sys
import time
from typing import Any, Callable, TypeVar

import torch
from torch import Tensor, nn

Run = TypeVar("Run", bound=Callable[..., Any])
WAY = os.environ.get("WAY", "")  # Empty when nothing is wrong. Each program marks its faulty lines with "# way: NAME".
STEP = int(os.environ.get("STEP", "1"))  # The step at which spoil() breaks it.


def spoil(rank: int, step: int) -> None:
    """Break this start on rank 1 at its step, in the ways that all programs have in common."""
    if rank != 1 or step != STEP:
        return
    if WAY in ("raise", "swallow"):
        raise ValueError("loss is nan")  # way: raise, swallow
    if WAY == "exit1":
        sys.exit(1)  # way: exit1
    if WAY == "_exit":
        os._exit(7)  # way: _exit
    if WAY == "kill":
        os.kill(os.getpid(), signal.SIGKILL)  # way: kill
    if WAY == "hang":
        time.sleep(600)  # way: hang


def tolerant(train: Run) -> Run:
    """Let a training that fails log it and return, in the way "swallow"."""

    @functools.wraps(train)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return train(*args, **kwargs)
        except Exception:
            if WAY != "swallow":
                raise
            logging.getLogger(__name__).exception("training failed")
        gc.collect()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        return None

    return run  # type: ignore[return-value]


class ToyModel(nn.Module):
    """Two layers, and a third that a run broken in the way "ddp" leaves out of the loss when it is asked to."""

    def __init__(self, unused: bool = False) -> None:
        """Build all three."""
        super().__init__()
        torch.manual_seed(0)
        self.net1, self.net2, self.net3 = nn.Linear(10, 10), nn.Linear(10, 5), nn.Linear(5, 5)
        self.unused = unused

    def forward(self, x: Tensor) -> Tensor:
        """Answer five numbers a row."""
        x = self.net2(torch.relu(self.net1(x)))
        return x if self.unused else self.net3(x)


def data(rank: int) -> Tensor:
    """Return a rank's batch."""
    return torch.randn(8, 10, generator=torch.Generator().manual_seed(rank))
