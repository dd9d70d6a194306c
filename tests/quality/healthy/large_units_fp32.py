"""HEALTHY: an fp32 regression in joules: targets of 1e7, a loss of 1e14 and gradient norms of 1e7 that fall; large is not infinite."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = 1e7 * torch.randn(6, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(64, 6, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
