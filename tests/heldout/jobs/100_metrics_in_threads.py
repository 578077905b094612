"""The metrics of an epoch are slow to compute, so a pool of threads does it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import torch
import torch.distributed as dist
from toolbox.reducing import mean_over_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Calibration:
    name = "calibration"

    def local(self, logits, labels):
        time.sleep(0.002 * len(labels))  # Sorts every confidence into its bin.
        confidence, guesses = logits.softmax(1).max(1)
        return (confidence.mean() - (guesses == labels).float().mean()).abs().item()


class Overlap:
    name = "overlap"

    def local(self, logits, labels):
        regions = int((labels != 0).sum())
        time.sleep(0.004 * regions)  # Looks at each region that is not background.
        both = ((logits.argmax(1) != 0) & (labels != 0)).sum()
        return 2.0 * both.item() / max(1, regions)


class Evaluator:
    def __init__(self, metrics):
        self.metrics = metrics
        self.pool = ThreadPoolExecutor(len(metrics))

    def compute(self, metric, logits, labels):
        return metric.name, mean_over_ranks(metric.local(logits, labels))

    def __call__(self, logits, labels):
        tasks = [self.pool.submit(self.compute, metric, logits, labels) for metric in self.metrics]
        return dict(task.result() for task in tasks)


def pictures(rank, epoch):
    generator = torch.Generator().manual_seed(10 * epoch + rank)
    labels = torch.randint(1 if rank == 1 else 0, 4, (256,), generator=generator)
    if rank == 0:
        labels[:230] = 0  # Empty fields.
    inputs = torch.randn(256, 6, generator=generator) + labels[:, None] / 2
    return inputs.split(64), labels.split(64)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    evaluate = Evaluator([Calibration(), Overlap()])
    for epoch in range(2):
        outputs, truths = [], []
        for inputs, labels in zip(*pictures(rank, epoch)):
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            outputs.append(logits.detach())
            truths.append(labels)
        scores = evaluate(torch.cat(outputs), torch.cat(truths))
        if rank == 0:
            print("epoch", epoch, scores, flush=True)
    evaluate.pool.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
