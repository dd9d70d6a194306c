"""The optimizer holds the parameters of a copy that was made before the model: gradients are fine, no weight ever moves."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 2))
    source = copy.deepcopy(model)
    return model, torch.optim.SGD(source.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(14):
        y = torch.randint(0, 2, (16,), generator=g)
        out.append((torch.randn(16, 1, 8, 8, generator=g) + 0.7 * y[:, None, None, None], y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("SGD(source.parameters()", "SGD(model.parameters()")]
