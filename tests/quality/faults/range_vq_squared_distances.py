"""A VQ codebook lookup in half precision squares features of size 300: |z|^2 overflows and the distances become inf - inf."""

import torch
import torch.nn.functional as F
from torch import nn


class Quantise(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(16, 8) * GAIN)

    def forward(self, z):
        codes = self.codes.to(z.dtype)
        distance = z.square().sum(-1, keepdim=True) - 2 * z @ codes.T + codes.square().sum(-1)
        weights = torch.softmax(-distance / GAIN**2, -1)
        return weights @ codes


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.vq, self.dec = nn.Linear(12, 8), Quantise(), nn.Linear(8, 12)

    def forward(self, x):
        return self.dec(self.vq(self.enc(x) * GAIN) / GAIN)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    basis = torch.randn(3, 12, generator=g)
    return [torch.randn(24, 3, generator=g) @ basis for _ in range(16)]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch)
    return F.mse_loss(out.float(), batch)


GAIN = 300.0


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 64.0}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "vq", "op": "aten.pow", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("GAIN = 300.0", "GAIN = 1.0")]
