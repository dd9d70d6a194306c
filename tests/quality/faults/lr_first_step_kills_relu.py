"""One step at a rate of 50 throws every hidden unit below zero: from the second step on the hidden gradients are exactly zero."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1), nn.ReLU())
    with torch.no_grad():
        model[2].weight.abs_()
    return model, torch.optim.SGD(model.parameters(), lr=50.0)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(24):
        x = torch.rand(32, 8, generator=g)
        out.append((x, 0.3 * x.sum(1, keepdim=True) * x[:, :1]))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["learning-rate", "initialisation"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("lr=50.0", "lr=0.05")]
