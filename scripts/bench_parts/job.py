"""A rank that trains when it is told to: reads a number of steps from stdin, runs them, answers with wall and CPU seconds."""

import contextlib
import os
import sys
import time
from typing import Any, ContextManager

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

_WIDTH, _BATCH = 256, 64


def main(profiled: bool) -> None:
    """Set up a job of two ranks and obey."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU())]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(_BATCH, _WIDTH)
    print("ready", flush=True)
    for line in sys.stdin:
        with _profiler(profiled):
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(int(line)):
                optimizer.zero_grad()
                model(inputs).square().mean().backward()
                optimizer.step()
            print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
    dist.destroy_process_group()  # without it the process may abort at exit (torch 2.13, gloo)


def _profiler(profiled: bool) -> ContextManager[Any]:
    if not profiled:
        return contextlib.nullcontext()
    from torch.profiler import ProfilerActivity, profile

    return profile(activities=[ProfilerActivity.CPU])


if __name__ == "__main__":
    main(os.environ.get("BENCH_PROFILER") == "1")
