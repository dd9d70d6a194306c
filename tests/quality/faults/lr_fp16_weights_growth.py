"""SGD in fp16 autocast with a scaler: loss and activations double from step to step, the scaler only hides the end of it."""

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.out = nn.Linear(20, 20), nn.Linear(20, 2)
        nn.init.eye_(self.proj.weight)
        self.proj.requires_grad_(False)

    def forward(self, x):
        return self.out(self.proj(x))


def build():
    torch.manual_seed(5)
    model = Tower()
    return model, torch.optim.SGD(model.out.parameters(), lr=2.2)


def batches():
    g = torch.Generator().manual_seed(6)
    teacher = torch.randn(20, 2, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 20, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"scaler": True, "init_scale": 1.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "forward", "module": "out", "op": "aten.addmm", "kind": "inf", "step": 10},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lr=2.2", "lr=0.1")]
