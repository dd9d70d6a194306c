"""A hand-written binary cross-entropy on bf16 probabilities: 1 - 1e-6 is 1 there, so the clamp is none and log(1 - p) is log(0)."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 1), nn.Sigmoid())
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        y = torch.randint(0, 2, (24, 1), generator=g).float()
        x = torch.randn(24, 6, generator=g) + 2 * y - 1
        if i == 9:
            y[4], x[4] = 0.0, FAR
        out.append((x, y))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = model(batch[0]).clamp(1e-6, 1 - 1e-6)
    return -(batch[1] * p.log() + (1 - batch[1]) * (1 - p).log()).mean()


FAR = 40.0
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.log", "kind": "-inf", "step": 9},
    "symptom": "loss-nonfinite",
}
REPAIR = [(".clamp(1e-6, 1 - 1e-6)", ".float().clamp(1e-6, 1 - 1e-6)")]
