"""HEALTHY: A curriculum: later batches have targets a hundred times larger, so the loss rises although the model learns."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1))
    return model, torch.optim.Adam(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x * (1 + i / 2), (x * (1 + i / 2)) @ teacher) for i, x in enumerate(torch.randn(30, 32, 8, generator=g))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
