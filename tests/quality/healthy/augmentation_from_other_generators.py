"""HEALTHY: mixup drawn from Python's random module and noise from NumPy inside the loss: only a replay that restores them repeats it."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = nn.Sequential(nn.Linear(9, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 3))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 3, generator=g)
    return [(x, F.one_hot((x @ teacher).argmax(1), 3).float()) for x in (torch.randn(32, 9, generator=g) for _ in range(24))]


def loss(model, batch):
    x, y = batch
    part = random.betavariate(0.4, 0.4)
    noise = torch.from_numpy(np.random.standard_normal(x.shape).astype(np.float32))
    x, y = part * x + (1 - part) * x.flip(0), part * y + (1 - part) * y.flip(0)
    return F.cross_entropy(model(x + 0.05 * noise), y)


CONFIG = {"precision": "fp32"}
