"""A normalisation buffer was allocated with torch.empty and never filled (NaN here, as torch fills it in deterministic mode)."""

import torch
import torch.nn.functional as F
from torch import nn


class Whiten(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("centre", torch.empty(width))

    def forward(self, x):
        return x - self.centre


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten, self.fc = Whiten(6), nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(self.whiten(x))


def build():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    model = Net()
    torch.use_deterministic_algorithms(False)
    return model, torch.optim.SGD(model.parameters(), lr=0.2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] > x[:, 1]).long()) for x in (torch.randn(32, 6, generator=g) for _ in range(12))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["initialisation", "checkpoint"],
    "first_nonfinite": {"phase": "buffer", "module": "whiten.centre", "op": "parameter/buffer", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.empty(width)", "torch.zeros(width)")]
