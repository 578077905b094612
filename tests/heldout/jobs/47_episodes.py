"""Policy gradients; each rank plays in an environment of its own, and rewards are normalised over all."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Corridor:
    """The walk is over at its end; each rank's corridor has a length of its own."""

    def __init__(self, length):
        self.length = length
        self.position = 0

    def reset(self):
        self.position = 0
        return self.observe()

    def observe(self):
        return torch.tensor([self.position / self.length, 1.0])

    def step(self):
        self.position += 1
        done = self.position >= self.length
        return self.observe(), float(done), done


class RewardScale:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, returned):
        sums = torch.tensor([returned, 1.0])
        dist.all_reduce(sums)
        self.total += sums[0].item()
        self.count += int(sums[1])


def play(env, policy, scale, steps):
    observation, returned = env.reset(), 0.0
    log_probabilities = []
    for _ in range(steps):
        distribution = torch.distributions.Categorical(logits=policy(observation))
        log_probabilities.append(distribution.log_prob(distribution.sample()))
        observation, reward, done = env.step()
        returned += reward
        if done:
            scale.update(returned)
            observation, returned = env.reset(), 0.0
    return torch.stack(log_probabilities)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    policy = DDP(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    env, scale = Corridor(length=6 if rank == 0 else 8), RewardScale()
    for _ in range(5):
        log_probabilities = play(env, policy.module, scale, steps=12)
        observation = env.observe()
        optimizer.zero_grad()
        (policy(observation).mean() - log_probabilities.mean()).backward()
        optimizer.step()
    print("rank", rank, "episodes", scale.count, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
