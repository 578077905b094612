"""A classifier of short texts, with words of its own."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

REVIEWS = [
    ("the food was good and warm", 1),
    ("cold soup and a rude waiter", 0),
    ("good wine", 1),
    ("we waited an hour for cold food", 0),
    ("warm bread and good soup", 1),
    ("rude and slow", 0),
    ("the wine was good", 1),
    ("the music was far too loud for us", 0),
]


class Vocabulary:
    def __init__(self, texts):
        words = sorted({word for text in texts for word in text.split()})
        self.numbers = {word: number for number, word in enumerate(words, 1)}

    def __len__(self):
        return len(self.numbers) + 1

    def encode(self, text, width=8):
        numbers = [self.numbers.get(word, 0) for word in text.split()]
        return torch.tensor((numbers + [0] * width)[:width])


class Reviews(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.vocabulary = Vocabulary([text for text, _ in rows])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        text, label = self.rows[index]
        return self.vocabulary.encode(text), label


class Classifier(nn.Module):
    def __init__(self, words, width=12):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, width)
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, 2)

    def forward(self, numbers):
        return self.head(self.norm(self.embedding(numbers)))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    reviews = Reviews(REVIEWS[rank :: dist.get_world_size()])
    model = DDP(Classifier(len(reviews.vocabulary)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        for numbers, labels in DataLoader(reviews, batch_size=2, shuffle=True):
            loss = nn.functional.cross_entropy(model(numbers), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print("epoch", epoch, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
