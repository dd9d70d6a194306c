"""HEALTHY: PPO on stale data: ratios reach e^12 before the clip takes them; the loss is finite and the policy improves."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 4, generator=g)
    out = []
    for _ in range(24):
        s = torch.randn(48, 6, generator=g)
        a = torch.randint(0, 4, (48,), generator=g)
        old = -1.4 - 10 * torch.rand(48, generator=g).pow(8)
        reward = (s @ teacher).gather(1, a[:, None]).squeeze(1)
        out.append((s, a, old, (reward - reward.mean()) / reward.std()))
    return out


def loss(model, batch):
    s, a, old, advantage = batch
    log_p = model(s).log_softmax(-1).gather(1, a[:, None]).squeeze(1)
    ratio = (log_p - old).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


CONFIG = {"precision": "fp32"}
