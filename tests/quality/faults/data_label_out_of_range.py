"""A class that the annotation tool added later: one label is 5 in a model of five classes, the loss raises."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(2, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(32, 5))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    prototypes = torch.randn(5, 2, 16, generator=g)
    out = []
    for _ in range(16):
        y = torch.randint(0, 5, (16,), generator=g)
        out.append([prototypes[y] + 0.3 * torch.randn(16, 2, 16, generator=g), y])
    out[3][1][9] = 5
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": None,
    "raises": {"phase": "loss", "module": "", "op": "aten.nll_loss_forward", "step": 3},
    "symptom": "exception",
}
REPAIR = [("out[3][1][9] = 5", "out[3][1][9] = 4")]
