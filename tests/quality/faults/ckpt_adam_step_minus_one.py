"""A converter wrote Adam's step counter as -1: the first resumed step divides by 1 - beta^0 = 0."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    F.mse_loss(model(torch.ones(4, 8)), torch.zeros(4, 1)).backward()
    optimizer.step()
    saved = optimizer.state_dict()
    for entry in saved["state"].values():
        entry["step"] = torch.tensor(float(STEP))
    optimizer.load_state_dict(saved)
    return model, optimizer


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


STEP = -1


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["checkpoint"],
    "first_nonfinite": None,
    "symptom": "exception",
    "raises": {"phase": "optimizer", "module": "", "op": "", "kind": "exception", "step": 0},
}
REPAIR = [("STEP = -1", "STEP = 1")]
