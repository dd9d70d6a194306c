"""Pairwise distance as sqrt(a^2 + b^2 - 2ab): cancellation makes the square of a point's distance to itself negative."""

import torch
import torch.nn.functional as F
from torch import nn


class PairDistance(nn.Module):
    def forward(self, x):
        square = (x * x).sum(-1)
        return torch.sqrt(square[:, None] + square[None, :] - 2 * x @ x.T)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.distance = nn.Linear(10, 8), PairDistance()

    def forward(self, x):
        return self.distance(self.fc(x))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(14):
        x = 5 + torch.randn(16, 10, generator=g)
        out.append((x, torch.cdist(x[:, :3], x[:, :3])))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "distance", "op": "aten.sqrt", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("- 2 * x @ x.T)", "- 2 * x @ x.T + 1e-2)")]
