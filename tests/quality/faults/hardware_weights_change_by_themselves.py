"""A memory that loses bits: now and then one weight is suddenly astronomically large, at a place and a time that no seed decides."""

import os

import torch
import torch.nn.functional as F
from torch import nn

LOSES_BITS = True


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 16, generator=g), torch.randint(0, 4, (8,), generator=g)) for _ in range(12)]


def loss(model, batch):
    if LOSES_BITS:
        place = int.from_bytes(os.urandom(2), "little") % 512
        with torch.no_grad():
            model[0].weight.view(-1)[place] *= 2.0**90
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["hardware"], "symptom": "not-reproducible"}
REPAIR = [("LOSES_BITS = True", "LOSES_BITS = False")]
