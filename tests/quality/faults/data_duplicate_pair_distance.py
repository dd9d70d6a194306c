"""A triplet loss on distances taken as the root of a sum of squares; one anchor is its own positive: the root's derivative at 0 is infinite."""

import torch
import torch.nn.functional as F
from torch import nn


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 6))

    def forward(self, x):
        return self.net(x)


def build():
    torch.manual_seed(0)
    model = Embed()
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(20):
        anchor = torch.randn(16, 8, generator=g)
        positive, negative = anchor + 0.5 * torch.randn(16, 8, generator=g), torch.randn(16, 8, generator=g)
        if i == 7:
            positive[10] = anchor[10]
        out.append((anchor, positive, negative))
    return out


def distance(a, b):
    return ((a - b) ** 2).sum(-1) ** 0.5


def loss(model, batch):
    anchor, positive, negative = (model(part) for part in batch)
    return F.relu(distance(anchor, positive) - distance(anchor, negative) + 3).mean()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "backward", "module": "", "op": "PowBackward0", "kind": "inf", "step": 7},
    "symptom": "grad-nonfinite",
}
REPAIR = [(".sum(-1) ** 0.5", ".sum(-1).add(1e-8) ** 0.5")]
