"""512 micro-batches are added up in the bf16 .grad of bf16 weights: once the sum is 256 times a term, the terms vanish."""

import torch
from torch import nn

MICRO = 512


def build():
    torch.manual_seed(0)
    model = nn.Linear(8, 1).to(DTYPE)
    return model, torch.optim.SGD(model.parameters(), lr=0.5)


def batches():
    g = torch.Generator().manual_seed(1)
    return [[torch.rand(2, 8, generator=g).add(0.5).to(DTYPE) for _ in range(MICRO)] for _ in range(3)]


def loss(model, x):
    return (model(x).float() + 4).square().mean() / MICRO


def step(model, optimizer, micro_batches, scaler):
    optimizer.zero_grad()
    total = 0.0
    for x in micro_batches:
        value = loss(model, x)
        value.backward()
        total += float(value.detach())
    optimizer.step()
    return {"loss": total, "grad_norm": float(model.weight.grad.float().norm())}


DTYPE = torch.bfloat16
CONFIG = {"precision": "bf16 weights and gradients", "accum": MICRO}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "low-precision-state"}
REPAIR = [("DTYPE = torch.bfloat16", "DTYPE = torch.float32"), ("lr=0.5", "lr=0.02")]
