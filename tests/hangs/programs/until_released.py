"""Two ranks: rank 1 waits for a file before a collective that rank 0 is in already; or rank 0 saves until the file is there, with the word works."""

import os
import sys
import time

import torch
import torch.distributed as dist


def comes_late(released):
    """Wait outside any call of torch.distributed."""
    while not (os.path.exists(released) or time.sleep(0.05)):  # the line that waits for the file
        pass  # On one line, because a watcher may look while it asks for the file.


class Slow:
    """Takes as long to be saved as the file is not there."""

    def __init__(self, released):
        self.released = released

    def __reduce__(self):
        """Wait, as a slow disk does."""
        comes_late(self.released)
        return str, ("saved",)


def rank(number, released, word):
    """Be one of the two."""
    dist.init_process_group("gloo", rank=number, world_size=2)
    tensor = torch.zeros(4)
    dist.all_reduce(tensor)  # the last call of rank 1
    if word == "hangs" and number == 1:
        comes_late(released)
    if word == "works" and number == 0:
        torch.save(Slow(released), os.devnull)  # the line that saves
    dist.all_reduce(tensor)  # the line of rank 0
    dist.destroy_process_group()


def spawns(released, word):
    """Start both ranks by torch.multiprocessing, and say what is left of the watcher in the parent."""
    import ddp_probe

    tasks = len(os.listdir("/proc/self/task"))
    torch.multiprocessing.start_processes(rank, (released, word), nprocs=2, start_method="fork")
    try:
        os.waitpid(-1, os.WNOHANG)
        print("a child is left")
    except ChildProcessError:
        print("no child is left")
    more = len(os.listdir("/proc/self/task")) - tasks
    ddp_probe.restore()
    until = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > tasks and time.monotonic() < until:
        time.sleep(0.01)  # The kernel counts a thread for a moment after its last line.
    print(more, len(os.listdir("/proc/self/task")) - tasks)


if __name__ == "__main__":
    how, *given = sys.argv[1:]
    if how == "spawns":
        spawns(*given)
    else:
        rank(int(os.environ["RANK"]), *given)
