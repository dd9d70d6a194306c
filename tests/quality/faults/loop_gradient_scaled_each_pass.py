"""Gradient accumulation whose loop divides the gradients after every micro-batch: the first ones are divided eight times over."""

import torch
import torch.nn.functional as F
from torch import nn

PARTS = 8


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(16, 12, generator=g) for _ in range(10)]
    return [(x, x[:, :3].argmax(1)) for x in rows]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    total = 0.0
    for part in zip(batch[0].chunk(PARTS), batch[1].chunk(PARTS), strict=True):
        value = loss(model, part)
        value.backward()
        total += value.item() / PARTS
        for parameter in model.parameters():
            parameter.grad.div_(PARTS)
    # after the last part
    optimizer.step()
    return {"loss": total}


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [
    ("        for parameter in model.parameters():\n            parameter.grad.div_(PARTS)\n", ""),
    ("    # after the last part\n", "    for parameter in model.parameters():\n        parameter.grad.div_(PARTS)\n"),
]
