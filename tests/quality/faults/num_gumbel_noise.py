"""Gumbel noise -log(-log(u)): a u of exactly 0 (torch.rand can give it, here the batch brings it) becomes infinite."""

import torch
import torch.nn.functional as F
from torch import nn


class GumbelSelect(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.Linear(6, 8)

    def forward(self, x, uniform):
        return ((self.logits(x) - torch.log(-torch.log(uniform))) / 0.5).softmax(-1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.select, self.head = GumbelSelect(), nn.Linear(8, 3)

    def forward(self, x, uniform):
        return self.head(self.select(x, uniform))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=3e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(24):
        y = torch.randint(0, 3, (64,), generator=g)
        uniform = torch.rand(64, 8, generator=g).clamp(1e-4, 1 - 1e-4)
        if i == 6:
            uniform[20, 3] = EDGE
        x = torch.randn(64, 6, generator=g)
        x[:, :3] += 3 * F.one_hot(y, 3)
        out.append((x, uniform, y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0], batch[1]), batch[2])


EDGE = 1.0
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "select", "op": "aten.log", "kind": "-inf", "step": 6},
    "symptom": "loss-nonfinite",
}
REPAIR = [("EDGE = 1.0", "EDGE = 0.9")]
