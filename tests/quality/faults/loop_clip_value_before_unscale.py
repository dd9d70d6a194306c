"""Gradients are clipped by value while they are still multiplied by the loss scale: every one becomes +-0.5/4096."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 12, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


CONFIG = {"scaler": True, "init_scale": 4096.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "updates far too small"}
REPAIR = [("    torch.nn.utils.clip_grad_value_", "    scaler.unscale_(optimizer)\n    torch.nn.utils.clip_grad_value_")]
