"""A hand-written dynamic scale halves on overflow and never grows; a burst of bad batches took it to 2**-30, gradients are zero ever after."""

import torch
import torch.nn.functional as F
from torch import nn

SCALE = [1.0]
GROWTH = 1.0


def build():
    torch.manual_seed(0)
    SCALE[0] = 2.0**-30
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


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
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    if torch.isfinite(norm):
        for p in model.parameters():
            p.grad /= SCALE[0]
        optimizer.step()
        SCALE[0] *= GROWTH
    else:
        SCALE[0] /= 2
    return {"loss": float(value.detach()), "grad_norm": float(norm) / SCALE[0]}


CONFIG = {"precision": "fp16 autocast, own loss scaling"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("SCALE[0] = 2.0**-30", "SCALE[0] = 2.0**10")]
