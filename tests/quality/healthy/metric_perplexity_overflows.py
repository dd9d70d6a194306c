"""HEALTHY: a logged perplexity exp(loss * 30) is inf and a per-class accuracy is 0/0 in some steps; both are metrics, detached."""

import torch
import torch.nn.functional as F
from torch import nn

LOGGED = []


def build():
    torch.manual_seed(0)
    LOGGED.clear()
    model = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 12))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 12, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(16, 9, generator=g) for _ in range(24))]


def loss(model, batch):
    logits = model(batch[0])
    value = F.cross_entropy(logits, batch[1])
    rare = batch[1] == 11
    LOGGED.append((float(torch.exp(value.detach() * 60)), float((logits.detach().argmax(1)[rare] == 11).float().mean())))
    return value


CONFIG = {"precision": "fp32"}
