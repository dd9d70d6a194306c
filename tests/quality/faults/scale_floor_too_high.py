"""A hand-written dynamic scale has a floor of 2**22 that overflows fp16 for this loss: every step is skipped, for ever."""

import torch
import torch.nn.functional as F
from torch import nn

SCALE = [0.0]


def build():
    torch.manual_seed(0)
    SCALE[0] = 2.0**24
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(30))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    (value * SCALE[0]).backward()
    if any(not torch.isfinite(p.grad).all() for p in model.parameters()):
        SCALE[0] = max(SCALE[0] / 2, FLOOR)
    else:
        for p in model.parameters():
            p.grad /= SCALE[0]
        optimizer.step()
    return {"loss": float(value.detach())}


FLOOR = 2.0**22


CONFIG = {"precision": "fp16 autocast, own loss scaling"}
TRUTH = {
    "causes": ["loss-scaling"],
    "first_nonfinite": {"phase": "backward", "module": "", "op": "ToCopyBackward0", "kind": "inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [("FLOOR = 2.0**22", "FLOOR = 1.0")]
