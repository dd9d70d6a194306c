"""The last batch of the epoch has one row (no drop_last): batch normalisation raises."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 3, generator=g)
    x = torch.randn(16 * 9 + LEFT_OVER, 8, generator=g)
    return [(part, (part @ teacher).argmax(1)) for part in x.split(16)]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


LEFT_OVER = 1
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics", "training-loop"],
    "first_nonfinite": None,
    "raises": {"phase": "forward", "module": "1", "op": "", "step": 9},
    "symptom": "exception",
}
REPAIR = [("LEFT_OVER = 1", "LEFT_OVER = 0")]
