"""HEALTHY: Whole blocks are skipped at random: their parameters have no gradient at all in these steps."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        if self.training and torch.rand(()) < 0.4:
            return x
        return x + torch.relu(self.fc(x))


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), *(Block(24) for _ in range(5)), nn.Linear(24, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
