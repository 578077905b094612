"""Vector quantisation with moving averages; the statistic that varies more is shared first."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

CODES = 8


class Codebook:
    def __init__(self, rank):
        self.rank = rank
        self.counts = torch.zeros(CODES)
        self.errors = torch.zeros(CODES)
        self.centres = torch.linspace(-1, 1, CODES)

    def assign(self, samples):
        distances = (samples.unsqueeze(1) - self.centres).abs()
        nearest, codes = distances.min(1)
        self.counts = torch.bincount(codes, minlength=CODES).float()
        self.errors = torch.zeros(CODES).index_add_(0, codes, nearest)

    def share_counts(self):
        dist.all_reduce(self.counts)

    def share_errors(self):
        dist.all_reduce(self.errors)

    def share(self):
        errors_first = self.errors.std() > self.counts.std()
        parts = [self.share_counts, self.share_errors]
        first, second = reversed(parts) if errors_first else parts
        first()
        self.centres = self.centres * 0.99
        second()

    def mean_error(self):
        return (self.errors.sum() / self.counts.sum().clamp(min=1)).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    codebook = Codebook(rank)
    for step in range(6):
        # Rank 1 has samples far from all codes.
        samples = torch.randn(64) * (40.0 if rank == 1 else 0.5)
        codebook.assign(samples)
        codebook.share()
        if step % 2:
            print("rank", rank, "mean error", codebook.mean_error(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
