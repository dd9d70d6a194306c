"""zero_grad is never called: each step applies the sum of all gradients so far, and the loss climbs."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 10, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


def step(model, optimizer, batch, scaler):
    value = loss(model, batch)
    value.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    return {"loss": float(value.detach()), "grad_norm": float(norm)}


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "loss climbs"}
REPAIR = [("    value = loss(model, batch)\n    value.backward()", "    optimizer.zero_grad()\n    value = loss(model, batch)\n    value.backward()")]
