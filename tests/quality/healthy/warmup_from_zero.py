"""HEALTHY: linear warm-up: the learning rate of the first step is exactly 0, the rate of the last step of the cosine is 0 again."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 3))
    return model, torch.optim.AdamW(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 10, generator=g) for _ in range(30))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


def scheduler(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: s / 6 if s < 6 else 0.5 * (1 + math.cos(math.pi * min(1.0, (s - 6) / 23))))


CONFIG = {"precision": "bf16 autocast"}
