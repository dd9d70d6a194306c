"""A static loss scale of 2**22 and no test for overflow: the first backward pass overflows fp16 and the step writes it into the weights."""

import torch
import torch.nn.functional as F
from torch import nn

SCALE = 2.0**22


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(16, 12, generator=g) for _ in range(12))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    (value * SCALE).backward()
    for p in model.parameters():
        p.grad /= SCALE
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    return {"loss": float(value.detach()), "grad_norm": float(norm)}


CONFIG = {"precision": "fp16 autocast, static loss scale"}
TRUTH = {
    "causes": ["loss-scaling"],
    "first_nonfinite": {"phase": "backward", "module": "", "op": "ToCopyBackward0", "kind": "inf", "step": 0},
    "symptom": "weights-nonfinite",
}
REPAIR = [("SCALE = 2.0**22", "SCALE = 2.0**10")]
