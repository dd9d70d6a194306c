"""Gradients are sent in fp16 and added up over many ranks before they are divided: the sum leaves the format, no rank's gradient does."""

import torch
import torch.nn.functional as F
from torch import nn

RANKS = 512


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 16, generator=g), torch.randint(0, 4, (8,), generator=g)) for _ in range(8)]


def loss(model, batch):
    return 4000.0 * F.cross_entropy(model(batch[0]), batch[1])


def all_reduced(gradient):
    sent = gradient.half().expand(RANKS, *gradient.shape)
    return sent.sum(0) / RANKS


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    for parameter in model.parameters():
        parameter.grad.copy_(all_reduced(parameter.grad))
    optimizer.step()
    return {"loss": value.item()}


CONFIG = {"precision": "fp32, gradients sent in fp16"}
TRUTH = {
    "causes": ["fp16-range", "low-precision-state"],
    "first_nonfinite": {"phase": "unscale", "module": "", "op": "aten.sum", "kind": "inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [("sent.sum(0) / RANKS", "(sent / RANKS).sum(0)")]
