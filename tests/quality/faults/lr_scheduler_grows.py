"""A learning-rate range test was left on: the schedule doubles the rate at every step until the run diverges."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.002)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(16, 10, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


def scheduler(optimizer):
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=2.0)


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mse_loss", "kind": "inf", "step": 12},
    "symptom": "loss-nonfinite",
}
REPAIR = [("gamma=2.0", "gamma=1.1")]
