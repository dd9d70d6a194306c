"""A survival batch in which nobody had the event: the partial likelihood is divided by zero events."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters(), lr=4e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        x = torch.randn(16, 6, generator=g)
        time = torch.exp(-x[:, 0] + 0.1 * torch.randn(16, generator=g))
        event = (torch.rand(16, generator=g) < 0.6).float()
        if i == 8:
            event = torch.zeros_like(event)
        out.append((x, time, event))
    return out


def loss(model, batch):
    x, time, event = batch
    risk = model(x).squeeze(-1)[time.argsort(descending=True)]
    event = event[time.argsort(descending=True)]
    likelihood = (risk - torch.logcumsumexp(risk, 0)) * event
    return -likelihood.sum() / event.sum()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.div", "kind": "nan", "step": 8},
    "symptom": "loss-nonfinite",
}
REPAIR = [("event.sum()", "event.sum().clamp(min=1)")]
