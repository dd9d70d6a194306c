"""A run resumes with the scale that an earlier NaN left behind, 2**-40: every gradient is exactly zero, and so it stays."""

import torch
import torch.nn.functional as F
from torch import nn

RESUME_SCALE = 2.0**-40


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.conv, self.out = nn.Conv1d(3, 12, 3, padding=1), nn.Conv1d(12, 12, 3, padding=1), nn.Linear(12, 1)

    def forward(self, x):
        return self.out(F.silu(self.conv(F.silu(self.inp(x)))).mean(-1))


def build():
    torch.manual_seed(0)
    model = Mixer()
    return model, torch.optim.RMSprop(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(12):
        x = torch.randn(16, 3, 20, generator=g)
        out.append((x, x[:, :1].abs().mean(-1) + x[:, 1:2].mean(-1)))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.smooth_l1_loss(out.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": RESUME_SCALE, "clip": 1.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("RESUME_SCALE = 2.0**-40", "RESUME_SCALE = 2.0**12")]
