"""Steps so large that the loss grows until a number format ends.

The first bad value is an overflow, but the headline does not stop there: the loss grew from step to step before it.
With a tenth of the learning rate the same steps are fine; in fp32 they fail as well.
"""

import torch
from torch import nn
from torch.nn import functional as F


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return model, torch.optim.SGD(model.parameters(), lr=3.0)


def batches():
    generator = torch.Generator().manual_seed(1)
    made = []
    for _ in range(12):
        inputs = torch.randn(32, 16, generator=generator)
        made.append((inputs, inputs[:, :1] - inputs[:, 1:2]))
    return made


def loss(model, batch):
    inputs, targets = batch
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return F.mse_loss(model(inputs), targets)


CONFIG = {"precision": "bf16", "scaler": False}
