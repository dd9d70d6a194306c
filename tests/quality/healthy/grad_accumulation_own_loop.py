"""HEALTHY: four micro-batches per update: three calls of four take no optimizer step and keep their gradients on purpose; fp16 with a scaler."""

import torch
import torch.nn.functional as F
from torch import nn

ACCUMULATE = 4
CALLS = [0]


def build():
    torch.manual_seed(0)
    CALLS[0] = 0
    model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 3))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(16, 10, generator=g) for _ in range(48))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1]) / ACCUMULATE


def step(model, optimizer, batch, scaler):
    CALLS[0] += 1
    value = loss(model, batch)
    scaler.scale(value).backward()
    if CALLS[0] % ACCUMULATE == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return {"loss": float(value.detach())}


CONFIG = {"scaler": True, "init_scale": 1024.0, "accum": ACCUMULATE, "precision": "fp16 autocast + GradScaler"}
