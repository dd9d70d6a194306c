"""Poisson regression on a log rate: one step that is too large makes exp(log rate) explode, the next gradient is that large."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    return model, torch.optim.SGD(model.parameters(), lr=4.0)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = 0.6 * torch.randn(6, 1, generator=g)
    out = []
    for _ in range(20):
        x = torch.randn(16, 6, generator=g)
        out.append((x, torch.poisson((x @ teacher).clamp(max=2.5).exp(), generator=g)))
    return out


def loss(model, batch):
    return F.poisson_nll_loss(model(batch[0]), batch[1], log_input=True)


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["learning-rate", "model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.exp", "kind": "inf", "step": 3},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lr=4.0", "lr=0.05")]
