"""A detector whose box loss is divided by the mean number of boxes over the ranks."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU())
        self.scores = nn.Conv2d(6, 1, 1)
        self.boxes = nn.Conv2d(6, 4, 1)

    def forward(self, images):
        features = self.backbone(images)
        return self.scores(features).flatten(1), self.boxes(features).flatten(2)


def mean_count(count):
    mean = torch.tensor(float(count))
    dist.all_reduce(mean)
    return max(1.0, mean.item() / dist.get_world_size())


def losses(output, targets):
    scores, boxes = output
    objectness = F.binary_cross_entropy_with_logits(scores, torch.zeros_like(scores))
    count = sum(len(target) for target in targets)
    distance = boxes.sum() * 0
    for index, target in enumerate(targets):
        for number, box in enumerate(target):
            distance = distance + F.l1_loss(boxes[index, :, number], box, reduction="sum")
    return {"objectness": objectness, "box": distance / (mean_count(count) if count else 1.0)}


def annotations(rank, step):
    counts = [0, 0] if rank == 1 and step == 4 else [2, (rank + step) % 3]
    return [torch.rand(count, 4) for count in counts]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(Detector())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(10):
        parts = losses(model(torch.rand(2, 3, 9, 9)), annotations(dist.get_rank(), step))
        total = sum(parts.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print("loss", total.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
