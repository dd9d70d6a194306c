"""Weights were cast to half and a GradScaler is used as well: it refuses to unscale half-precision gradients."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 3)).to(DTYPE)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 10, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


DTYPE = torch.float16
CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["low-precision-state", "training-loop", "loss-scaling"],
    "first_nonfinite": None,
    "raises": {"phase": "unscale", "module": "", "op": "", "step": 0},
    "symptom": "exception",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
