"""unscale_ is called for the logged norm and once more before clipping: the second call raises."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 24), nn.SiLU(), nn.Linear(24, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] > x[:, 1]).long()) for x in (torch.randn(32, 9, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach()), "grad_norm": float(norm)}


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["training-loop", "loss-scaling"],
    "first_nonfinite": None,
    "raises": {"phase": "unscale", "module": "", "op": "", "step": 0},
    "symptom": "exception",
}
REPAIR = [("    scaler.unscale_(optimizer)\n    torch.nn", "    torch.nn")]
