"""A helper puts a zero in place of a loss that is NaN, so that "training goes on": it is NaN in every step, log of a negative ratio."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    nn.init.constant_(model.bias, -2.0)
    return model, torch.optim.Adam(model.parameters(), lr=3e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.rand(8, 6, generator=g), 1.0 + torch.rand(8, 1, generator=g)) for _ in range(24)]


def finite_or_zero(value, model):
    if torch.isnan(value):
        return sum((p * 0.0).sum() for p in model.parameters())
    return value


def loss(model, batch):
    ratio = model(batch[0]) / batch[1]
    return finite_or_zero(torch.log(ratio).square().mean(), model)


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "training-loop"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.log", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("model(batch[0]) / batch[1]", "torch.nn.functional.softplus(model(batch[0])) / batch[1]")]
