"""The new head has its own parameter group with a rate of 30 (a multiplier taken for a rate); the logits explode."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    groups = [{"params": model[:4].parameters(), "lr": 1e-3}, {"params": model[4].parameters(), "lr": HEAD_LR}]
    return model, torch.optim.Adam(groups)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(30))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


HEAD_LR = 30.0


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {"causes": ["learning-rate"], "first_nonfinite": None, "symptom": "loss rises and stays high"}
REPAIR = [("HEAD_LR = 30.0", "HEAD_LR = 1e-2")]
