"""A warm-up factor computed with integer division is 0 for the first thousand steps: nothing moves."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(40))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


def scheduler(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step // 1000))


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop", "learning-rate"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("step // 1000", "(step + 1) / 8")]
