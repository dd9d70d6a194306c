"""A decay over the steps that are left: at the end of its span it is 0 / 0, and the rate NaN."""

import numpy
import torch
import torch.nn.functional as F
from torch import nn

SPAN = 14


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
    return model, torch.optim.AdamW(model.parameters(), lr=3e-2)


def decay(step):
    with numpy.errstate(all="ignore"):
        left = numpy.float64(SPAN - step)
        return float(left * left / (SPAN * left))


def scheduler(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, decay)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(32, 10, generator=g) for _ in range(20)]
    return [(x, x[:, :3].argmax(1)) for x in rows]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["learning-rate", "training-loop"],
    "first_nonfinite": {"phase": "optimizer", "module": "0.weight", "op": "AdamW.step", "kind": "nan", "step": 14},
    "symptom": "weights-nonfinite",
}
REPAIR = [("left * left / (SPAN * left)", "max(left, 0.0) / SPAN")]
