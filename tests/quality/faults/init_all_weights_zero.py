"""Every weight matrix was initialised to zero: no signal passes, only the last bias ever gets a gradient."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 3))
    for layer in model[::2]:
        nn.init.normal_(layer.weight, std=STD)
        nn.init.zeros_(layer.bias)
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 9, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


STD = 0.0
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {"causes": ["initialisation"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("STD = 0.0", "STD = 0.2")]
