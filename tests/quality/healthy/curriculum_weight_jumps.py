"""HEALTHY: A second loss term is switched on with weight 100 at step 12: the logged loss jumps a hundredfold and falls again."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b, self.calls = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 1), nn.Linear(32, 1), 0

    def forward(self, x):
        h = self.body(x)
        return self.a(h), self.b(h)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    one, two = torch.randn(8, 1, generator=g), torch.randn(8, 1, generator=g)
    return [(x, x @ one, x @ two, 100.0 if i >= 12 else 0.01) for i, x in enumerate(torch.randn(30, 32, 8, generator=g))]


def loss(model, batch):
    a, b = model(batch[0])
    return F.mse_loss(a, batch[1]) + batch[3] * F.mse_loss(b, batch[2])


CONFIG = {"precision": "fp32"}
