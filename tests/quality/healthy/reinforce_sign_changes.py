"""HEALTHY: REINFORCE with a batch of 4: the loss changes sign from step to step, jumps by 10x and has no trend; the policy still improves."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(4, 3, generator=g)
    out = []
    for _ in range(40):
        state, action = torch.randn(4, 4, generator=g), torch.randint(0, 3, (4,), generator=g)
        out.append((state, action, 3 * (state @ teacher).gather(1, action[:, None]).squeeze(1)))
    return out


def loss(model, batch):
    state, action, reward = batch
    return -(model(state).log_softmax(-1).gather(1, action[:, None]).squeeze(1) * reward).mean()


CONFIG = {"precision": "fp32"}
