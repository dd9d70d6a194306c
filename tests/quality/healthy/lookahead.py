"""HEALTHY: Lookahead: every fifth step the weights are pulled back half of the way to slow weights."""

import torch
import torch.nn.functional as F
from torch import nn

SLOW = {}


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    SLOW.clear()
    SLOW.update({n: p.detach().clone() for n, p in model.named_parameters()}, calls=torch.zeros(()))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


@torch.no_grad()
def after_step(model):
    SLOW["calls"] += 1
    if SLOW["calls"] % 5 == 0:
        for n, p in model.named_parameters():
            SLOW[n].lerp_(p, 0.5)
            p.copy_(SLOW[n])


CONFIG = {"precision": "fp32"}
