"""F1 from precision and recall; what cannot be computed counts as zero."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def mean_over_ranks(value):
    tensor = torch.tensor([value], dtype=torch.float32)
    dist.all_reduce(tensor)
    return tensor.item() / dist.get_world_size()


def precision(counts):
    return mean_over_ranks(counts["tp"] / (counts["tp"] + counts["fp"]))


def recall(counts):
    return mean_over_ranks(counts["tp"] / (counts["tp"] + counts["fn"]))


def scores(counts):
    result = {"precision": 0.0, "recall": 0.0}
    for name, function in (("precision", precision), ("recall", recall)):
        try:
            result[name] = function(counts)
        except ZeroDivisionError:
            continue
    return result


def support(counts):
    return mean_over_ranks(float(sum(counts.values())))


def counts_of(rank, epoch):
    # Rank 1 predicts nothing in the first epoch, rank 0 nothing in the last.
    if (rank, epoch) in ((1, 0), (0, 3)):
        return {"tp": 0, "fp": 0, "fn": 7}
    return {"tp": 5 + rank, "fp": 2, "fn": 1}


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    for epoch in range(4):
        counts = counts_of(rank, epoch)
        result = scores(counts)
        result["support"] = support(counts)
        print("rank", rank, "epoch", epoch, result, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
