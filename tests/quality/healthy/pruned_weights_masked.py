"""HEALTHY: Magnitude pruning: 80 % of the weights are set back to exactly zero after each step."""

import torch
import torch.nn.functional as F
from torch import nn

MASKS = {}


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    MASKS.clear()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 2:
                MASKS[name] = p.abs() > p.abs().flatten().quantile(0.8)
                p *= MASKS[name]
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(16, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 16, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


@torch.no_grad()
def after_step(model):
    for name, p in model.named_parameters():
        if name in MASKS:
            p *= MASKS[name]


CONFIG = {"precision": "fp32"}
