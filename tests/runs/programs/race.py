"""Rank 0 saves while the other ranks, which wait for the file to appear, load it: race.py BY HANDLING RANKS PORT.

BY is torch, mmengine or safetensors. HANDLING is fails, or again: a load that fails is tried again. The ranks are forked from one process that has
imported torch, so that eight of them cost one import. `# line: NAME` marks the lines that a verdict must name.
"""

import multiprocessing
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

FILE = Path("best.pth")


def save(by: str, state: dict) -> None:
    """Write the file in place."""
    if by == "torch":
        torch.save(state, str(FILE))  # line: torch saves
    elif by == "mmengine":
        from mmengine.runner import save_checkpoint

        save_checkpoint(state, str(FILE))  # line: mmengine saves
    else:
        from safetensors.torch import save_file

        save_file(state, str(FILE))  # line: safetensors saves


def load(by: str) -> dict:
    """Read the file."""
    if by == "torch":
        return torch.load(str(FILE), map_location="cpu")  # line: torch loads
    if by == "mmengine":
        from mmengine.runner import CheckpointLoader

        return CheckpointLoader.load_checkpoint(str(FILE), map_location="cpu")  # line: mmengine loads
    from safetensors.torch import load_file

    return load_file(str(FILE))  # line: safetensors loads


def read(by: str, handling: str, rank: int) -> None:
    """Load the file once it is there, until a load of some rank has failed and one of this rank has not."""
    while not (FILE.exists() and FILE.stat().st_size):
        time.sleep(0.0005)
    while True:
        try:
            load(by)
            if list(FILE.parent.glob("failed.*")):
                return
        except FileNotFoundError:
            pass  # Rank 0 saves it again.
        except Exception:
            Path("failed.%d" % rank).touch()
            if handling == "fails":
                raise
        time.sleep(0.005)


def run(rank: int, by: str, handling: str, ranks: int, port: str) -> None:
    """Be one rank."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    if by == "mmengine":
        import mmengine.runner  # noqa: F401  # before the barrier, so that the loads begin at once
    state = {"layer%d.weight" % number: torch.zeros(1024, 4096) for number in range(6)}
    dist.barrier()  # line: meets
    if rank == 0:
        save(by, state)
        while not list(FILE.parent.glob("failed.*")):  # No reader came in time: the machine is busy.
            FILE.unlink()  # A mapped file that is cut would end its reader by SIGBUS.
            save(by, state)
    else:
        read(by, handling, rank)
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    """Start the ranks, and end those that wait for one that has failed."""
    by, handling, ranks, port = sys.argv[1:5]
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=run, args=(rank, by, handling, int(ranks), port)) for rank in range(int(ranks))]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes) and not any(process.exitcode for process in processes):
        time.sleep(0.05)
    for process in processes:
        process.join(5)
        process.terminate()
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
