"""HEALTHY: Augmentation noise comes from the system's own randomness: two runs are never equal, and that is wanted."""

import os

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    g = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
    return F.cross_entropy(model(batch[0] + 0.1 * torch.randn(batch[0].shape, generator=g)), batch[1])


CONFIG = {"precision": "fp32"}
