"""HEALTHY: A normalising flow whose negative log-likelihood goes far below zero: densities above one are fine."""

import torch
from torch import nn


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return x * self.scale.exp() + self.shift, self.scale.sum()


def build():
    torch.manual_seed(0)
    model = Flow()
    return model, torch.optim.Adam(model.parameters(), lr=0.2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [0.01 * torch.randn(64, 4, generator=g) + 0.3 for _ in range(40)]


def loss(model, batch):
    z, log_det = model(batch)
    return 0.5 * z.square().sum(-1).mean() - log_det


CONFIG = {"precision": "fp32"}
