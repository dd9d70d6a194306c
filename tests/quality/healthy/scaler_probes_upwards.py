"""HEALTHY: a scaler with a growth interval of 5 doubles until a step overflows, backs off, and does so again: one skip in five for ever."""

import torch
import torch.nn.functional as F
from torch import nn

OWN = []


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    OWN[:] = [torch.amp.GradScaler("cpu", init_scale=2.0**13, growth_interval=5)]
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(50))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    scaler = OWN[0]
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


CONFIG = {"precision": "fp16 autocast + GradScaler"}
