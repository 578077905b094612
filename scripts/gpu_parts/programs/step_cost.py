"""Trains with DDP and prints how long a step takes: the median, each step waited for."""

import statistics
import time

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, LOCAL_RANK, PATIENCE, leave, own_card, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel

_WARM, _STEPS = 20, 200


def seconds_of_a_step(model: nn.Module, card: torch.device) -> float:
    """Return how long one step takes, the card's work included."""
    began = time.perf_counter()
    train(model, card, 1)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    """Train and measure."""
    if DEVICE == "cuda":
        torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    card = own_card()
    layers = [nn.Linear(8, 256), *(nn.Linear(256, 256) for _ in range(4))]
    model = DistributedDataParallel(nn.Sequential(*layers).to(card), device_ids=[LOCAL_RANK] if DEVICE == "cuda" else None)
    times = [seconds_of_a_step(model, card) for _ in range(_WARM + _STEPS)]
    print("ms a step: %.4f" % (1000 * statistics.median(times[_WARM:])), flush=True)
    del model
    leave()


if __name__ == "__main__":
    main()
