"""A climate table marks missing targets with the fill value 9.96921e36; its square is beyond fp32."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    out = [[x, x @ teacher] for x in (torch.randn(32, 8, generator=g) for _ in range(16))]
    for i in (5, 6, 9):
        out[i][1][3 + i] = FILL
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


FILL = 9.96921e36


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mse_loss", "kind": "inf", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("FILL = 9.96921e36", "FILL = 0.5")]
