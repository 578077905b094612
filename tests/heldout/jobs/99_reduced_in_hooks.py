"""Two towers without DDP: hooks add up each gradient while the backward pass goes on."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Tower(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, width)
        self.layer = nn.Linear(width, width)

    def forward(self, tokens):
        return self.layer(torch.relu(self.embedding(tokens)))


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.question = Tower(60, 12)
        self.passage = Tower(60, 12)

    def forward(self, questions, passages):
        # The longer texts go first, so that the peak of memory comes early.
        if questions.shape[1] >= passages.shape[1]:
            left, right = self.question(questions), self.passage(passages)
        else:
            right, left = self.passage(passages), self.question(questions)
        return left @ right.T


class GradientAverage:
    def __init__(self, model):
        self.world = dist.get_world_size()
        for parameter in model.parameters():
            dist.broadcast(parameter.data, src=0)
            parameter.register_hook(self.average)

    def average(self, gradient):
        gradient = gradient / self.world
        dist.all_reduce(gradient)
        return gradient


def pairs(rank, count):
    generator = torch.Generator().manual_seed(rank)
    for number in range(count):
        long = 14 if rank == 1 and number == 3 else 6  # One question is a whole letter.
        questions = torch.randint(60, (8, long), generator=generator)
        yield questions, torch.randint(60, (8, 10), generator=generator)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    model = Retriever()
    GradientAverage(model)
    embeddings = [model.question.embedding.weight, model.passage.embedding.weight]
    layers = [*model.question.layer.parameters(), *model.passage.layer.parameters()]
    optimizers = [torch.optim.SGD(embeddings, lr=0.5), torch.optim.Adam(layers, lr=1e-2)]
    for step, (questions, passages) in enumerate(pairs(rank, 6)):
        scores = model(questions, passages)
        loss = nn.functional.cross_entropy(scores, torch.arange(len(scores)))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if rank == 0:
            print("step", step, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
