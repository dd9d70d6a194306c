"""A StepLR meant for epochs is stepped every batch: after a dozen steps the rate is 1e-12 and nothing moves any more."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4))
    return model, torch.optim.SGD(model.parameters(), lr=0.5)


def scheduler(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=STEP_SIZE, gamma=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(40))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


STEP_SIZE = 1


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop", "learning-rate"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("STEP_SIZE = 1", "STEP_SIZE = 30")]
