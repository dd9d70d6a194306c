"""zero_grad stands between backward and step: the optimizer always steps on nothing."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 9, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


def step(model, optimizer, batch, scaler):
    value = loss(model, batch)
    value.backward()
    optimizer.zero_grad()
    optimizer.step()
    return {"loss": float(value.detach())}


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [
    (
        "    value = loss(model, batch)\n    value.backward()\n    optimizer.zero_grad()\n",
        "    value = loss(model, batch)\n    optimizer.zero_grad()\n    value.backward()\n",
    )
]
