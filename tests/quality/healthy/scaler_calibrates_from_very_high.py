"""HEALTHY: the scaler starts at 2**30: about a dozen steps are skipped with infinite gradients until it fits, then the run learns."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(44))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": 2.0**30, "precision": "fp16 autocast + GradScaler"}
