"""What a snapshot costs, as a ratio measured side by side; a program of its own and a function for others to call."""

import statistics
import sys
import time
from typing import Any, Callable, Dict

import torch

from ddp_probe.traced.facts.placement import devices_only, snapshot


def model(parameters: int) -> torch.nn.Module:
    """Return blocks of a Linear and a ReLU with this many parameters in all."""
    blocks = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()) for _ in range(parameters // 2)]
    return torch.nn.Sequential(*blocks)


def bare_loop(module: torch.nn.Module) -> None:
    """Read each parameter's device, which is the least that can be done."""
    for _, parameter in module.named_parameters():
        parameter.device  # noqa: B018  # reading it is what is measured


def _seconds(f: Callable[[Any], Any], module: torch.nn.Module) -> float:
    started = time.perf_counter()
    f(module)
    return time.perf_counter() - started


def measure(parameters: int = 10_000, rounds: int = 15) -> Dict[str, float]:
    """Return the median ratios of snapshot and devices_only to the bare loop, and the fastest of each in milliseconds."""
    module = model(parameters)
    times = [[_seconds(f, module) for f in (bare_loop, snapshot, devices_only)] for _ in range(rounds)]
    fastest = [1000 * min(column) for column in zip(*times)]
    return {
        "snapshot": statistics.median(row[1] / row[0] for row in times),
        "devices_only": statistics.median(row[2] / row[0] for row in times),
        "bare_ms": fastest[0],
        "snapshot_ms": fastest[1],
        "devices_only_ms": fastest[2],
    }


if __name__ == "__main__":
    found = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    print(torch.__version__, {name: round(value, 2) for name, value in found.items()})
