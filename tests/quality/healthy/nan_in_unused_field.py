"""HEALTHY: every batch carries a metadata column that is NaN where it is unknown; the loss never reads it."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 24), nn.ReLU(), nn.Linear(24, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(20):
        x = torch.randn(24, 7, generator=g)
        age = torch.rand(24, generator=g) * 80
        age[torch.rand(24, generator=g) < 0.3] = float("nan")
        out.append({"x": x, "y": (x[:, 0] > x[:, 1]).long(), "age": age, "name": f"part {i}"})
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch["x"]), batch["y"])


CONFIG = {"precision": "fp32"}
