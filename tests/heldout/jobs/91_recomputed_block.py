"""Long sentences are checkpointed to save memory; each block sees the mean over all ranks."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class GlobalContext(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, hidden):
        mean = hidden.detach().mean((0, 1))
        parts = [torch.empty_like(mean) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, mean)
        return self.mix(torch.stack(parts).mean(0))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.context = GlobalContext(width)
        self.layer = nn.Linear(width, width)

    def forward(self, hidden):
        hidden = self.norm(hidden)
        return hidden + torch.relu(self.layer(hidden) + self.context(hidden))


class Encoder(nn.Module):
    def __init__(self, words, width, depth, long):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, words)
        self.long = long

    def saves_memory(self, hidden):
        return self.training and hidden.shape[1] > self.long

    def run(self, block, hidden):
        if self.saves_memory(hidden):
            return checkpoint(block, hidden, use_reentrant=False)
        return block(hidden)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = self.run(block, hidden)
        return self.head(hidden)


def sentences(rank):
    lengths = [12, 15, 9, 14, 31, 10] if rank == 1 else [10, 14, 16, 8, 13, 12]
    generator = torch.Generator().manual_seed(rank)
    for length in lengths:
        yield torch.randint(40, (4, length + 1), generator=generator)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Encoder(words=40, width=16, depth=2, long=24))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, tokens in enumerate(sentences(rank)):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print("step", step, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
