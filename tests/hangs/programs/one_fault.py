"""A small training on several ranks, in which one rank does something wrong at one step: one_fault.py FAULT RANK STEP RANKS PORT BACKEND.

The ranks are forked from one process that has imported torch, so that eight of them cost one import. `# line: NAME` marks the lines that a
verdict must name: that of a fault has the fault's name, and `others` says where the other ranks then are.
"""

import multiprocessing
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

STEPS = 6


class Images(Dataset):
    """As many images as there are steps; one of them may be on a disk that does not answer."""

    def __init__(self, stuck: int) -> None:
        """Remember which image cannot be read."""
        self.stuck = stuck

    def __len__(self) -> int:
        """Return the number of images."""
        return STEPS

    def __getitem__(self, index: int) -> torch.Tensor:
        """Read one image."""
        if index == self.stuck:
            time.sleep(3600)  # line: reads
        return torch.full((16,), float(index))


def stop(fault: str, rank: int, ranks: int, values: torch.Tensor) -> None:
    """Stay somewhere, or leave, before the reduction of this step."""
    if fault == "sleeps":
        time.sleep(3600)  # line: sleeps
    elif fault == "loops":
        while True:  # line: loops
            pass  # line: turns
    elif fault == "receives":
        dist.recv(values, src=(rank + 1) % ranks)  # line: receives
    elif fault == "fails":
        raise ValueError("the loss is not finite")  # line: fails
    elif fault == "exits":
        sys.exit(0)  # line: exits
    elif fault == "leaves":
        os._exit(3)  # line: leaves
    elif fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


def other(fault: str, values: torch.Tensor) -> torch.Tensor:
    """Return what this rank brings to the reduction of this step."""
    return torch.zeros(24) if fault == "more" else values.double() if fault == "double" else values


def train(fault: str, guilty: int, step: int, rank: int, ranks: int) -> None:
    """Reduce, broadcast and meet in each step."""
    loader = DataLoader(Images(step if fault == "starves" and rank == guilty else -1), batch_size=1)
    batches = iter(loader)
    for number in range(STEPS):
        values = next(batches)[0]
        now = fault if (rank, number) == (guilty, step) else ""
        stop(now, rank, ranks, values)
        values = other(now, values)
        if now == "gathers":
            dist.all_gather([torch.zeros_like(values) for _ in range(ranks)], values)  # line: gathers
        elif now != "skips":
            dist.all_reduce(values)  # line: others
        root = (0 if ranks < 3 else 1) if now == "root" else ranks - 1
        dist.broadcast(values, src=root)  # line: broadcast
    dist.barrier()  # line: end


def run(rank: int, backend: str, fault: str, guilty: int, step: int, ranks: int, port: int) -> None:
    """Be one rank."""
    if backend == "eccl":
        import torch_gcu  # noqa: F401  # it registers the backend
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group(backend, timeout=timedelta(minutes=5))  # line: joins
    train(fault, guilty, step, rank, ranks)
    dist.destroy_process_group()


def main() -> None:
    """Start the ranks and wait for them."""
    fault, numbers = sys.argv[1], [int(word) for word in sys.argv[2:6]]
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=run, args=(rank, sys.argv[6], fault, *numbers)) for rank in range(numbers[2])]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
