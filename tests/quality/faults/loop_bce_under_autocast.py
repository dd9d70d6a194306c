"""Binary cross-entropy of probabilities inside CUDA's autocast, which refuses it."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(8, 10, generator=g) for _ in range(8)]
    return [(x, (x[:, :1] > 0).float()) for x in rows]


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        scores = model(batch[0])
        return F.binary_cross_entropy(scores.sigmoid(), batch[1])


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["model-numerics"], "raises": {"phase": "loss", "module": "", "op": "", "step": 0}, "symptom": "exception"}
REPAIR = [("F.binary_cross_entropy(scores.sigmoid(), batch[1])", "F.binary_cross_entropy_with_logits(scores, batch[1])")]
