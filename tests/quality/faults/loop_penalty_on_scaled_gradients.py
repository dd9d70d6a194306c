"""A gradient penalty takes the norm of gradients that are still multiplied by the loss scale: it is 65536 times too large and overflows."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Softplus(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    grads = torch.autograd.grad(scaler.scale(value), list(model.parameters()), create_graph=True)
    inverse = 1.0 / scaler.get_scale() if UNSCALE else 1.0
    penalty = sum((g * inverse).square().sum() for g in grads)
    total = value + 0.01 * penalty
    scaler.scale(total).backward()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(total.detach())}


UNSCALE = False


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 4096.0}
TRUTH = {
    "causes": ["training-loop", "loss-scaling"],
    "first_nonfinite": {"phase": "backward", "module": "", "op": "ToCopyBackward0", "kind": "inf", "step": 0},
    "symptom": "scaler-stuck",
}
REPAIR = [("UNSCALE = False", "UNSCALE = True")]
