"""A bias of -50 from a wrong initialiser: no hidden unit is ever active, its weights have gradients of exactly zero."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 3))
    nn.init.constant_(model[2].bias, BIAS)
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 9, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


BIAS = -50.0
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {"causes": ["initialisation", "model-numerics"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("BIAS = -50.0", "BIAS = 0.0")]
