"""Supervised contrastive loss: one anchor of batch 4 has no other sample of its class, its mean over positives is 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    centres = torch.randn(4, 10, generator=g)
    out = []
    for i in range(12):
        y = torch.arange(16) % 4
        if i == 4:
            y[5] = LONELY
        out.append((centres[y.clamp(max=3)] + 0.3 * torch.randn(16, 10, generator=g), y))
    return out


def loss(model, batch):
    z = F.normalize(model(batch[0]), dim=-1)
    y = batch[1]
    self_mask = torch.eye(len(y), dtype=torch.bool)
    logits = (z @ z.T / 0.1).masked_fill(self_mask, -1e4)
    log_p = logits.log_softmax(-1)
    positive = (y[:, None] == y[None]) & ~self_mask
    return -((log_p * positive).sum(1) / positive.sum(1)).mean()


LONELY = 9


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.div", "kind": "nan", "step": 4},
    "symptom": "loss-nonfinite",
}
REPAIR = [("LONELY = 9", "LONELY = 1")]
