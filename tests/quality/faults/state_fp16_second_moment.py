"""Adam on half-precision weights with eps 1e-7: the squared gradients flush to zero, so each update is gradient/1e-7 and the weights leave."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)).half()
    return model, torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x.half(), (x @ teacher).argmax(1)) for x in (torch.randn(64, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    return WEIGHT * F.cross_entropy(model(batch[0]).float(), batch[1])


WEIGHT = 0.02
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "loss-not-moving"}
REPAIR = [(", nn.Linear(32, 4)).half()", ", nn.Linear(32, 4))"), ("x.half()", "x.float()")]
