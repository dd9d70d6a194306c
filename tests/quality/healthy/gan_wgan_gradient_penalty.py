"""HEALTHY: WGAN with gradient penalty: losses are negative, change sign and never settle; the penalty needs a second backward pass."""

import torch
from torch import nn

CRITIC = []


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))
        self.critic = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))


def build():
    torch.manual_seed(0)
    model = Pair()
    CRITIC[:] = [torch.optim.Adam(model.critic.parameters(), lr=3e-3, betas=(0.0, 0.9))]
    return model, torch.optim.Adam(model.generator.parameters(), lr=3e-3, betas=(0.0, 0.9))


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randn(16, 2, generator=g) * 0.3 + 1, torch.randn(16, 3, generator=g), torch.rand(16, 1, generator=g)) for _ in range(30)]


def loss(model, batch):
    return -model.critic(model.generator(batch[1])).mean()


def step(model, optimizer, batch, scaler):
    real, noise, mix = batch
    critic = CRITIC[0]
    critic.zero_grad()
    fake = model.generator(noise).detach()
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(model.critic(between).sum(), between, create_graph=True)
    penalty = (slope.square().sum(-1).add(1e-8).sqrt() - 1).square().mean()
    (model.critic(fake).mean() - model.critic(real).mean() + 10 * penalty).backward()
    critic.step()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    optimizer.step()
    return {"loss": float(value.detach())}


CONFIG = {"precision": "fp32"}
