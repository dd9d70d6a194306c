"""HEALTHY: a hinge loss on separable data reaches exactly 0, its gradient with it: the run has converged, nothing underflows; fp16 autocast."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.04)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(30):
        y = 2.0 * torch.randint(0, 2, (24, 1), generator=g) - 1
        out.append((2 * y + 0.3 * torch.randn(24, 6, generator=g), y))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        score = model(batch[0])
    return (1 - batch[1] * score.float()).clamp(min=0).mean()


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
