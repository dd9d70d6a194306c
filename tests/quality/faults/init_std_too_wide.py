"""Ten layers initialised with a standard deviation of 1: activations grow by a factor of 8 per layer, the sixth passes 65504."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(64, 64, bias=False) for _ in range(10)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=STD)
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.LeakyReLU(0.5))), nn.Linear(64, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] > 0).long()) for x in (torch.randn(32, 64, generator=g) for _ in range(24))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


STD = 1.0
CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range", "initialisation"],
    "first_nonfinite": {"phase": "forward", "module": "10", "op": "aten.mm", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("STD = 1.0", "STD = 0.15")]
