"""300 weighted micro-batches are added up in the bf16 .grad of bf16 weights: after a heavy first one, the light ones vanish."""

import torch
from torch import nn

MICRO = 300


def build():
    torch.manual_seed(0)
    model = nn.Linear(8, 1).to(DTYPE)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def batches():
    g = torch.Generator().manual_seed(1)
    weights = torch.ones(MICRO)
    weights[0] = 600.0
    weights /= weights.sum()
    return [[((torch.randn(2, 8, generator=g) + 1.5).to(DTYPE), float(w)) for w in weights] for _ in range(3)]


def loss(model, weighted):
    x, weight = weighted
    return weight * (model(x).float() + 4).square().mean()


def step(model, optimizer, micro_batches, scaler):
    optimizer.zero_grad()
    total = 0.0
    for weighted in micro_batches:
        value = loss(model, weighted)
        value.backward()
        total += float(value.detach())
    optimizer.step()
    return {"loss": total, "grad_norm": float(model.weight.grad.float().norm())}


DTYPE = torch.bfloat16
CONFIG = {"precision": "bf16 weights and gradients", "accum": MICRO}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "accumulated gradient too small"}
REPAIR = [("DTYPE = torch.bfloat16", "DTYPE = torch.float32")]
