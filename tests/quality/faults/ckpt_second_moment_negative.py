"""Quantised second moments were restored with a few entries below zero: Adam takes the root of a negative number."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    F.mse_loss(model(torch.ones(4, 8)), torch.zeros(4, 1)).backward()
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0]["exp_avg_sq"][5, 2] = OFFSET
    optimizer.load_state_dict(saved)
    return model, optimizer


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


OFFSET = -0.5


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["checkpoint", "low-precision-state", "model-numerics"],
    "first_nonfinite": {"phase": "optimizer", "module": "0.weight", "op": "", "kind": "nan", "step": 0},
    "symptom": "weights-nonfinite",
}
REPAIR = [("OFFSET = -0.5", "OFFSET = 0.5")]
