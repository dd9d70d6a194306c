"""SGD with a rate above 2/curvature: a linear model's loss grows by a steady factor until fp32 ends."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(3)
    model = nn.Linear(24, 1)
    return model, torch.optim.SGD(model.parameters(), lr=9.0)


def batches():
    g = torch.Generator().manual_seed(4)
    teacher = torch.randn(24, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(16, 24, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mse_loss", "kind": "inf", "step": 13},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lr=9.0", "lr=0.05")]
