"""HEALTHY: a physics residual of 1e-9 in fp32 with gradients of 1e-9: Adam divides the scale away, and fp32 holds it."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-15)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(64, 6, generator=g) for _ in range(24))]


def loss(model, batch):
    return 1e-9 * F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
