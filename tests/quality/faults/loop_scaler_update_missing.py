"""scaler.update() was forgotten: the second step raises."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] > x[:, 1]).long()) for x in (torch.randn(32, 7, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.step(optimizer)
    return {"loss": float(value.detach())}


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["training-loop", "loss-scaling"],
    "first_nonfinite": None,
    "raises": {"phase": "optimizer", "module": "", "op": "", "step": 1},
    "symptom": "exception",
}
REPAIR = [("    scaler.step(optimizer)\n", "    scaler.step(optimizer)\n    scaler.update()\n")]
