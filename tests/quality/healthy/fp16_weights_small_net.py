"""HEALTHY: pure fp16 weights, SGD with momentum, no scaler: gradients of 1e-2 and updates of 1e-3 fit fp16 well."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 3)).half()
    return model, torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 3, generator=g)
    return [(x.half(), (x @ teacher).argmax(1)) for x in (torch.randn(16, 10, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


CONFIG = {"precision": "pure fp16 weights"}
