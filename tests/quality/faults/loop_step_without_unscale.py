"""The loss is scaled, but the optimizer is stepped directly: the gradients are 65536 times too large."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    optimizer.step()
    return {"loss": float(value.detach())}


CONFIG = {"scaler": True, "precision": "bf16 autocast + GradScaler"}
TRUTH = {
    "causes": ["training-loop"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mse_loss", "kind": "inf", "step": 2},
    "symptom": "loss-nonfinite",
}
REPAIR = [("    optimizer.step()\n", "    scaler.step(optimizer)\n    scaler.update()\n")]
