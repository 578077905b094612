"""Gathers the statistics of a tree of regions, from the leaves to the root."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class Region:
    def __init__(self, name, population, parts=()):
        self.name = name
        self.population = population
        self.parts = list(parts)


def country(rank):
    towns = [Region("town%d" % number, 10 + rank + number) for number in range(3)]
    districts = [Region("north", 0, towns), Region("south", 0, [Region("village", 4 + rank)])]
    if rank == 1:
        districts[1].parts[0].parts = [Region("upper hamlet", 3), Region("lower hamlet", 2)]
    return Region("country", 0, districts)


def total(region, depth=0):
    """Return the population of a region over all ranks."""
    own = torch.tensor([float(region.population)])
    if region.parts:
        for part in region.parts:
            own += total(part, depth + 1)
        return own
    dist.all_reduce(own)
    dist.barrier()
    return own


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    root = country(dist.get_rank())
    root.parts.append(Region("overseas", 8))
    people = total(root)
    counted = torch.tensor([1.0, people.item()])
    dist.reduce(counted, dst=0)
    if dist.get_rank() == 0:
        print("people", counted[1].item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
