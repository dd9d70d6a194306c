"""HEALTHY: LBFGS calls its closure several times per step, and the loss it logs is that of the first call."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    return model, torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, history_size=5)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 1, generator=g)
    x = torch.randn(64, 6, generator=g)
    return [(x, torch.sin(x @ teacher))] * 10


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


def step(model, optimizer, batch, scaler):
    def closure():
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        return value

    return {"loss": float(optimizer.step(closure).detach())}


CONFIG = {"precision": "fp32"}
