"""fp16 autocast without a loss scale; the loss is a mean over 8,192 outputs and is weighted by 1e-5: every gradient flushes to zero."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 1, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(8):
        x = torch.randn(2, 1, 64, 64, generator=g)
        out.append((x, torch.nn.functional.avg_pool2d(x, 3, 1, 1)))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return 1e-5 * (out.float() - batch[1]).pow(2).mean()


CONFIG = {"scaler": False, "precision": "fp16 autocast"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [('"scaler": False', '"scaler": True')]
