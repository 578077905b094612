"""Two ranks that train for some steps; then rank 1 does something else, in the way that is asked for, while rank 0 waits in a barrier."""

import io
import os
import pdb  # noqa: T100  # a rank that stands in a debugger is one of the ways
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

_COMPUTE = "while True: sum(range(100000))"


class Shards(Dataset):  # type: ignore[type-arg]
    """Items of which one does not come."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        """Return one, or never."""
        if index == 8:
            time.sleep(600)
        return torch.ones(16)


def starves() -> None:
    """Wait for a worker of the DataLoader that sleeps."""
    for _ in DataLoader(Shards(), batch_size=4, num_workers=1):
        pass


def waits_in_kernel() -> None:
    """Stand in the kernel's state D: who starts a process by vfork waits there, and the new process waits for a writer before it is a program."""
    os.mkfifo("pipe")
    os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "pipe", os.O_RDONLY, 0)])


def validate() -> None:
    """Compute for long."""
    while True:
        torch.ones(256, 256).matmul(torch.ones(256, 256))


def compiles() -> None:
    """Wait for a program that computes."""
    subprocess.run([sys.executable, "-c", _COMPUTE], check=False)


def writes() -> None:
    """Write one large file, slowly."""
    with open("model.pt", "wb") as file:
        while True:
            file.write(b"0" * 4096)
            file.flush()
            time.sleep(0.4)


def polls() -> None:
    """Look again and again whether something is there."""
    while not os.path.exists("there"):
        time.sleep(0.02)


def accumulates(model: nn.Module) -> None:
    """Compute many small steps without the others."""
    with model.no_sync():  # type: ignore[operator]
        while True:
            model(torch.ones(64, 256)).sum().backward()


def main() -> None:
    """Train, then part."""
    way = sys.argv[1]
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(256, 256))
    for _ in range(3):
        model(torch.ones(8, 256)).sum().backward()
    print("loss", flush=True)
    if dist.get_rank() == 1:
        if way == "debugs":
            os.mkfifo("terminal")
            with open(os.open("terminal", os.O_RDWR), "rb") as terminal:
                pdb.Pdb(stdin=io.TextIOWrapper(terminal), stdout=sys.stdout).set_trace()  # type: ignore[type-var]
                print("resumed", flush=True)  # The debugger stops here: up to 3.9 a `with` ends in no line.
        elif way == "accumulates":
            accumulates(model)
        else:
            {"starves": starves, "disk": waits_in_kernel, "validates": validate, "compiles": compiles, "writes": writes, "polls": polls}[way]()
    dist.barrier()


if __name__ == "__main__":
    main()
