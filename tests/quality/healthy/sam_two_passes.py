"""HEALTHY: Sharpness-aware minimisation: weights are moved up the slope, a second backward pass, moved back, then the step."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.SGD(model.parameters(), lr=0.2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    moves = []
    with torch.no_grad():
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        for p in model.parameters():
            moves.append(0.05 * p.grad / (norm + 1e-12))
            p.add_(moves[-1])
    optimizer.zero_grad()
    loss(model, batch).backward()
    with torch.no_grad():
        for p, move in zip(model.parameters(), moves, strict=False):
            p.sub_(move)
    optimizer.step()
    return {"loss": float(value.detach()), "grad_norm": float(norm)}


CONFIG = {"precision": "fp32"}
