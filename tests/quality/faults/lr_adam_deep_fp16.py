"""AdamW with a rate of 0.3 in fp16 autocast: each step adds 0.3 to every weight of nine layers, the activations multiply."""

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.relu(self.up(x)))


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), *(Residual(32) for _ in range(4)), nn.Linear(32, 5))
    return model, torch.optim.AdamW(model.parameters(), lr=3e-1)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 5, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": 1.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "forward", "module": "4.up", "op": "aten.addmm", "kind": "inf", "step": 2},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lr=3e-1", "lr=3e-3")]
