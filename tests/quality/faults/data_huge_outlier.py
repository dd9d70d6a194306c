"""One row of one batch has a target of ten septillion, a wrong unit or a sentinel: its squared error is beyond fp32."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 2))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 2, generator=g)
    out = [(x, x @ teacher) for x in (torch.randn(16, 9, generator=g) for _ in range(14))]
    out[5][1][11, 1] = 1e25
    return out


def loss(model, batch):
    return (model(batch[0]) - batch[1]).square().sum(-1).mean()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.pow", "kind": "inf", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("1e25", "1.0")]
