"""A homemade accumulate-and-clip loop divides the gradients by the scale itself, then scaler.step unscales them again: Adam hides it, SGD crawls."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(24))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    if TWICE:
        for p in model.parameters():
            p.grad /= scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


TWICE = True


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 4096.0}
TRUTH = {"causes": ["training-loop", "loss-scaling"], "first_nonfinite": None, "symptom": "updates far too small"}
REPAIR = [("TWICE = True", "TWICE = False")]
