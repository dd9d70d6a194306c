"""Missing measurements were stored as NaN in the target of three rows: that step logs NaN, the weights stay clean (the sign of NaN is 0)."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(11, 40), nn.SiLU(), nn.Linear(40, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(11, 4, generator=g)
    out = [[x, x @ teacher] for x in (torch.randn(20, 11, generator=g) for _ in range(16))]
    out[9][1][[2, 3, 15], 0] = MISSING
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.l1_loss(out.float(), batch[1])


MISSING = float("nan")
CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": {"phase": "input", "module": "batch", "op": "input", "kind": "nan", "step": 9},
    "symptom": "loss-nonfinite",
}
REPAIR = [('MISSING = float("nan")', "MISSING = 0.0")]
