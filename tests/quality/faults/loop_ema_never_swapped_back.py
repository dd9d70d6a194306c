"""The averaged weights are swapped in for evaluation after every step and never swapped back: training starts anew from the average."""

import torch
import torch.nn.functional as F
from torch import nn

AVERAGE = {}


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    AVERAGE.clear()
    AVERAGE.update({n: p.detach().clone() for n, p in model.named_parameters()})
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(30))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


@torch.no_grad()
def after_step(model):
    for name, p in model.named_parameters():
        AVERAGE[name].lerp_(p, 1e-3)
        if SWAP:
            p.copy_(AVERAGE[name])


SWAP = True


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("SWAP = True", "SWAP = False")]
