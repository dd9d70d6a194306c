"""HEALTHY: batch size 1: the loss varies by a factor of 1000 from step to step while its average falls."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(5, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(1, 5, generator=g) for _ in range(80))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
