"""HEALTHY: fine-tuning of a model that is already at the optimum of noisy labels: the loss is flat from the first step, gradients are noise."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    with torch.no_grad():
        model.weight.copy_(torch.linspace(-1, 1, 8)[None])
        model.bias.zero_()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(30):
        x = torch.randn(64, 8, generator=g)
        out.append((x, x @ torch.linspace(-1, 1, 8)[:, None] + torch.randn(64, 1, generator=g)))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
