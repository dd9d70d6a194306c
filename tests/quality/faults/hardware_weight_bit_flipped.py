"""One exponent bit of one weight flipped on its way from disk: 0.02 became 6e36, and the layer after it overflows."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    with torch.no_grad():
        bits = model[2].weight.view(torch.int32)
        bits[7, 3] ^= FLIP
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), F.one_hot(batch[1], 4).float())


FLIP = 1 << 30


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["hardware", "checkpoint", "initialisation"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mse_loss", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("FLIP = 1 << 30", "FLIP = 0")]
