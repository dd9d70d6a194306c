"""A loop that looks at the loss and ends the process when it is not finite, as many reference scripts do. The rate is too high."""

import math
import sys

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    return model, torch.optim.SGD(model.parameters(), lr=40.0)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    rows = [torch.randn(16, 8, generator=g) for _ in range(60)]
    return [(x, x @ teacher) for x in rows]


def loss(model, batch):
    return (model(batch[0]) - batch[1]).square().mean()


def step(model, optimizer, batch, scaler):
    value = loss(model, batch)
    if not math.isfinite(value.item()):
        print(f"loss is {value.item()}, stopping")
        sys.exit(1)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return {"loss": value.item()}


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.pow", "kind": "inf", "step": 8},
    "symptom": "exception",
}
REPAIR = [("lr=40.0", "lr=0.02")]
