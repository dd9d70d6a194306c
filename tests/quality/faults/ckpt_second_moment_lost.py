"""A resume that restored Adam's first moment and step count but left the second moment at zero: the first updates are 30 times too long."""

import torch
import torch.nn.functional as F
from torch import nn


def data(seed, count):
    g = torch.Generator().manual_seed(seed)
    teacher = torch.randn(8, 2, generator=torch.Generator().manual_seed(9))
    return [(x, x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(count))]


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for batch in data(3, 20):
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()
    saved = optimizer.state_dict()
    for entry in saved["state"].values():
        entry["exp_avg_sq"] = entry["exp_avg_sq"] / (1 - 0.999**20) * KEPT  # as after many more steps
        entry["step"] = torch.tensor(5000.0)
    optimizer.load_state_dict(saved)
    return model, optimizer


def batches():
    return data(1, 10)


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


KEPT = 0.0
CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["checkpoint", "low-precision-state"], "first_nonfinite": None, "symptom": "the loss jumps"}
REPAIR = [("KEPT = 0.0", "KEPT = 1.0")]
