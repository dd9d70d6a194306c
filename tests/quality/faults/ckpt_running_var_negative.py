"""Two checkpoints were extrapolated to merge them, BatchNorm's running variance with them: one entry is negative, and eval mode takes its root."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 4))
    with torch.no_grad():
        model[1].running_var.copy_(torch.linspace(0.4, 2.0, 24))
        model[1].running_var[5] = VAR
    model[1].eval()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


VAR = -0.05


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["checkpoint", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "1", "op": "aten.native_batch_norm", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("VAR = -0.05", "VAR = 0.05")]
