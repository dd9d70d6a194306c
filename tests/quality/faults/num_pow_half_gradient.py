"""A gamma curve x ** 0.5 over rectified values: at exactly 0 the derivative is infinite, and the hand-written rectifier multiplies it by 0."""

import torch
import torch.nn.functional as F
from torch import nn


class Gamma(nn.Module):
    def forward(self, x):
        return x.pow(0.5)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.gamma, self.head = nn.Linear(7, 20), Gamma(), nn.Linear(20, 1)

    def forward(self, x):
        hidden = self.fc(x)
        return self.head(self.gamma(hidden * (hidden > 0)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, x[:, :1].abs()) for x in (torch.randn(24, 7, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "backward", "module": "gamma", "op": "PowBackward0", "kind": "inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [("x.pow(0.5)", "(x + 1e-3).pow(0.5)")]
