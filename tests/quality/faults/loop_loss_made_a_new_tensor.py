"""The loss is wrapped in a new tensor before backward (torch.tensor(value, requires_grad=True)): no parameter is reached."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 24), nn.ReLU(), nn.Linear(24, 3))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(7, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 7, generator=g) for _ in range(16))]


def loss(model, batch):
    value = F.cross_entropy(model(batch[0]), batch[1])
    return torch.tensor(value.item(), requires_grad=True)


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "gradients-missing"}
REPAIR = [("return torch.tensor(value.item(), requires_grad=True)", "return value")]
