"""Two models in one loop; the one with the larger loss learns first."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def network(seed):
    torch.manual_seed(seed)
    return DDP(nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 1)))


class Agent:
    def __init__(self):
        self.actor = network(1)
        self.critic = network(2)
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=0.05)
        self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.05)

    def update_actor(self, loss):
        self.actor_optimizer.zero_grad()
        loss.backward()
        self.actor_optimizer.step()

    def update_critic(self, loss):
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

    def learn(self, states, rewards):
        actor_loss = -self.actor(states).mean() + 0.5
        critic_loss = (self.critic(states) - rewards).pow(2).mean()
        if actor_loss > critic_loss:
            self.update_actor(actor_loss)
            self.update_critic(critic_loss)
        else:
            self.update_critic(critic_loss)
            self.update_actor(actor_loss)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    agent = Agent()
    torch.manual_seed(10 + rank)
    for _ in range(12):
        rewards = torch.full((4, 1), 0.0 if rank == 0 else 4.0)
        agent.learn(torch.randn(4, 6) * 0.1, rewards)
    dist.barrier()
    print("rank", rank, sum(p.sum().item() for p in agent.actor.parameters()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
