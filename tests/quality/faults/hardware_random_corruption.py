"""A failing device: one element of a layer's output gets a wrong exponent at a place that differs from run to run."""

import os

import torch
import torch.nn.functional as F
from torch import nn


class Flaky(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc, self.calls = nn.Linear(d, d), 0

    def forward(self, x):
        y = self.fc(x)
        self.calls += 1
        if FAULTY and self.calls > 3:
            place = int.from_bytes(os.urandom(4), "little") % y.numel()
            hit = torch.zeros(y.numel()).scatter(0, torch.tensor([place]), 1.0).view_as(y)
            y = y + hit * 3e38 * 3
        return y


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), Flaky(24), nn.ReLU(), nn.Linear(24, 4))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


FAULTY = True


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["hardware"],
    "first_nonfinite": {"phase": "forward", "module": "1", "op": "aten.mul", "kind": "inf", "step": 3},
    "symptom": "loss-nonfinite",
}
REPAIR = [("FAULTY = True", "FAULTY = False")]
