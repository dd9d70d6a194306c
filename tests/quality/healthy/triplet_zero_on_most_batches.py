"""HEALTHY: A triplet margin loss on easy triplets is exactly 0, with gradients of exactly 0, on most batches near the end."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 4))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    centres = torch.randn(2, 8, generator=g) * 2
    return [tuple(centres[i] + 0.2 * torch.randn(16, 8, generator=g) for i in (0, 0, 1)) for _ in range(30)]


def loss(model, batch):
    return F.triplet_margin_loss(*(model(x) for x in batch), margin=2.0)


CONFIG = {"precision": "fp32"}
