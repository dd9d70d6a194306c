"""The loop replaces a NaN loss by zero: the log shows 0.0 while the gradients are NaN and destroy the weights."""

import torch
import torch.nn.functional as F
from torch import nn


class LogScale(nn.Module):
    def forward(self, x):
        return torch.log(x - 0.2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.fc = LogScale(), nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(self.scale(x))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        x = torch.rand(32, 6, generator=g) + 0.3
        y = (x[:, 0] > x[:, 1]).long()
        if i >= 4:
            x = x - 0.2
        out.append((x, y))
    return out


def loss(model, batch):
    return torch.nan_to_num(F.cross_entropy(model(batch[0]), batch[1]), nan=0.0)


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "training-loop", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "scale", "op": "aten.log", "kind": "nan", "step": 4},
    "symptom": "grad-nonfinite",
}
REPAIR = [("torch.log(x - 0.2)", "torch.log(x.clamp(min=0.05))")]
