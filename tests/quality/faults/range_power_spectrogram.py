"""A power spectrogram is computed in half precision: the loud chord of batch 3 has |X|^2 above 65504."""

import torch
import torch.nn.functional as F
from torch import nn


class Power(nn.Module):
    def __init__(self):
        super().__init__()
        n = torch.arange(64)[:, None] * torch.arange(33)[None] * (2 * torch.pi / 64)
        self.register_buffer("cos", torch.cos(n))
        self.register_buffer("sin", torch.sin(n))

    def forward(self, x):
        re, im = x @ self.cos, x @ self.sin
        return re * re + im * im


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.power, self.head = Power(), nn.Linear(33, 2)

    def forward(self, x):
        return self.head(self.power(x * LEVEL).clamp(min=1e-2).log())


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    t = torch.arange(64) / 64 * 2 * torch.pi
    out = []
    for i in range(10):
        y = torch.randint(0, 2, (16,), generator=g)
        x = torch.sin(t * (3 + 5 * y[:, None])) * (1.0 if i != 3 else 6.0) + 0.2 * torch.randn(16, 64, generator=g)
        out.append((x, y))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


LEVEL = 3.0


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 64.0}
TRUTH = {
    "causes": ["fp16-range", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "power", "op": "aten.mul", "kind": "inf", "step": 3},
    "symptom": "loss-nonfinite",
}
REPAIR = [("LEVEL = 3.0", "LEVEL = 0.1")]
