"""HEALTHY: the derivative of x ** 0.5 at 0 is infinite, but it lands where ReLU's backward writes 0."""

import torch
import torch.nn.functional as F
from torch import nn


class Gamma(nn.Module):
    def forward(self, x):
        return x.pow(0.5)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.gamma, self.head = nn.Linear(7, 20), Gamma(), nn.Linear(20, 1)

    def forward(self, x):
        return self.head(self.gamma(F.relu(self.fc(x))))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, x[:, :1].abs()) for x in (torch.randn(24, 7, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
