"""Per-batch standardisation divides by the standard deviation of a column that is constant in one batch: 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


class Standardise(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / x.std(0)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(Standardise(), nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        x = torch.randn(32, 6, generator=g)
        y = x[:, :1] - x[:, 3:4]
        if i == 5:
            x[:, 4] = 1.0
        out.append((x, y))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "0", "op": "aten.div", "kind": "nan", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("/ x.std(0)", "/ (x.std(0) + 1e-6)")]
