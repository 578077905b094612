"""Makes collectives on one rank in loops over names, and in loops over other things."""

import enum
import weakref

import torch
import torch.distributed as dist
from torch import Tensor


class Part(enum.Enum):
    """What is reduced."""

    LOSS = 1
    SIZE = 2


class Big:
    """Something that goes when nobody holds it any more."""


def reduced(value: Tensor) -> Tensor:
    """Add up over all ranks; others call it in their loops."""
    dist.all_reduce(value)
    return value


def by_name(sums: "dict[str, Tensor]") -> None:
    """Reduce each of some sums in this function."""
    for name, value in sums.items():
        if name:
            dist.all_reduce(value)


def by_helper(names: "list[str]", sums: "dict[str, Tensor]") -> "list[Tensor]":
    """Reduce each of some sums in another function."""
    return [reduced(sums[name]) for name in names]


def by_number(order: "list[int]") -> None:
    """Broadcast in the order of numbers."""
    for number in order:
        dist.broadcast(torch.tensor([number]), src=0)


def by_part() -> None:
    """Gather each part."""
    for part in Part:
        dist.all_gather([torch.zeros(1)], torch.tensor([float(part.value)]))


def by_step(steps: int) -> None:
    """Meet at each step, which is no name."""
    for _ in range(steps):
        dist.barrier()
    for step, _ in enumerate([1.5, 2.5]):
        dist.reduce(torch.tensor([step]), dst=0)


def held() -> bool:
    """Tell whether what the job has let go of is still there behind a call in a loop."""
    big = Big()
    there = weakref.ref(big)
    for name in ("first", "second"):
        assert name
        dist.all_reduce_coalesced([torch.zeros(1)])
    del big
    return there() is not None


def main() -> None:
    """Make all of them."""
    dist.init_process_group("gloo")
    sums = {"loss": torch.ones(1), "size": torch.ones(1)}
    by_name(sums)
    by_helper(["size", "loss", "size"], sums)
    by_number([3, 0, 2000])
    by_part()
    by_step(3)
    print("held", held())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
