"""Rank 0 hands out work; a worker that is quick gets more of it."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

STOP = -1


def coordinate(tasks, workers):
    """Answer each worker that asks with the number of a task, until there is none."""
    results = {}
    request = torch.zeros(3)
    waiting = set(workers)
    while waiting:
        dist.recv(request)
        worker, task, value = request.tolist()
        if task != STOP:
            results[int(task)] = value
        number = tasks.pop() if tasks else STOP
        if number == STOP:
            waiting.discard(int(worker))
        dist.send(torch.tensor([number]), dst=int(worker))
    return results


def work(rank):
    done = 0
    report = torch.tensor([float(rank), float(STOP), 0.0])
    number = torch.zeros(1, dtype=torch.long)
    while True:
        dist.send(report, dst=0)
        dist.recv(number, src=0)
        if number.item() == STOP:
            return done
        if rank == 2:
            time.sleep(0.2)
        report[1], report[2] = number.item(), float(number.item() ** 2)
        done += 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        results = coordinate(list(range(20)), range(1, world))
        done = len(results)
    else:
        done = work(rank)
    counts = torch.zeros(world)
    counts[rank] = done
    dist.all_reduce(counts)
    if rank == 0:
        print("tasks by rank", counts.tolist(), "sum", sum(results.values()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
