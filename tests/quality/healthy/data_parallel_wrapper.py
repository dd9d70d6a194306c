"""HEALTHY: the model sits in a DataParallel wrapper (names start with `module.`), batch normalisation inside, nested and reused modules."""

import torch
import torch.nn.functional as F
from torch import nn


class Twice(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.SiLU())

    def forward(self, x):
        return self.shared(self.shared(x))


def build():
    torch.manual_seed(0)
    model = nn.DataParallel(nn.Sequential(nn.Linear(8, 24), Twice(24), nn.Linear(24, 3)))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 8, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
