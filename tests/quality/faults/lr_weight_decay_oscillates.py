"""Coupled weight decay of 3 at a rate of 1: each step multiplies the weights by -2, until fp16 cannot hold an activation."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return model, torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=3.0)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 8, generator=g) for _ in range(24))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": 64.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "forward", "module": "2", "op": "aten.addmm", "kind": "inf", "step": 7},
    "symptom": "loss-nonfinite",
}
REPAIR = [("weight_decay=3.0", "weight_decay=3e-4"), ("lr=1.0", "lr=0.5")]
