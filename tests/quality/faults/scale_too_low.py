"""A scaler that starts at 2**-20 (and would need 2000 clean steps to double): the gradients are pushed below fp16's range, not into it."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(20, 10, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(256, 20, generator=g) for _ in range(10))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": 2.0**-20, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("2.0**-20", "2.0**14")]
