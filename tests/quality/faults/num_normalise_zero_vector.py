"""Embeddings are divided by their norm; a dropped-out row is exactly zero: 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


class UnitLength(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.unit = nn.Linear(8, 6, bias=False), nn.Linear(8, 6, bias=False), UnitLength()

    def forward(self, a, b):
        return 10 * self.unit(self.left(a)) @ self.unit(self.right(b)).T


def build():
    torch.manual_seed(0)
    model = TwoTower()
    return model, torch.optim.AdamW(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    mix = torch.randn(8, 8, generator=g)
    out = [[x, x @ mix] for x in (torch.randn(12, 8, generator=g) for _ in range(18))]
    out[6][0][9] = 0.0
    return out


def loss(model, batch):
    logits = model(*batch)
    return F.cross_entropy(logits, torch.arange(12))


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "unit", "op": "aten.div", "kind": "nan", "step": 6},
    "symptom": "loss-nonfinite",
}
REPAIR = [("x.norm(dim=-1, keepdim=True)", "(x.norm(dim=-1, keepdim=True) + 1e-6)")]
