"""The GradScaler is told to grow sixteenfold after every step: every second step overflows and is skipped."""

import torch
import torch.nn.functional as F
from torch import nn

SCALER = []


def build():
    torch.manual_seed(0)
    SCALER[:] = [torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=1024.0, backoff_factor=0.5, growth_interval=INTERVAL)]
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(60))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, _):
    scaler = SCALER[0]
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


INTERVAL = 1


CONFIG = {"precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "scaler-stuck"}
REPAIR = [("INTERVAL = 1", "INTERVAL = 2000")]
