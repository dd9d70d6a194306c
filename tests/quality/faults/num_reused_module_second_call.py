"""One module is called twice; only in its second call does a reciprocal meet an exact zero, left there by the rectifier."""

import torch
import torch.nn.functional as F
from torch import nn


class Inverse(nn.Module):
    def forward(self, x):
        return torch.reciprocal(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.inverse, self.head = nn.Linear(6, 12), Inverse(), nn.Linear(12, 1)

    def forward(self, x):
        h = self.inverse(1 + self.fc(x).square())
        return self.head(0.01 * self.inverse(F.relu(h - 0.05) + FLOOR) + h)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(20):
        x = torch.randn(32, 6, generator=g)
        y = x[:, :1].abs()
        if i >= 4:
            x = x * 6
        out.append((x, y))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


FLOOR = 0.0
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "inverse", "op": "aten.reciprocal", "kind": "inf", "step": 4},
    "symptom": "loss-nonfinite",
}
REPAIR = [("FLOOR = 0.0", "FLOOR = 0.5")]
