"""HEALTHY: one hard batch multiplies loss and gradient norm by 100 in mid-run; clipping holds, the next steps are as before; fp16 with a scaler."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 1, generator=g)
    out = []
    for i in range(36):
        x = torch.randn(32, 10, generator=g) * (12 if i == 20 else 1)
        out.append((x, x @ teacher))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": 16.0, "clip": 1.0, "precision": "fp16 autocast + GradScaler"}
