"""Both factors of a low-rank adapter start at zero: each one's gradient is a product with the other, so neither ever leaves zero."""

import torch
import torch.nn.functional as F
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.zeros(rank, width)), nn.Parameter(torch.zeros(width, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = Adapter(12, 2), Adapter(12, 2), nn.Linear(12, 2).requires_grad_(False)

    def forward(self, x):
        return self.head(torch.tanh(self.two(torch.tanh(self.one(x)))))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] + x[:, 1] > 0).long()) for x in (torch.randn(64, 12, generator=g) for _ in range(40))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["initialisation"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [("self.a, self.b = nn.Parameter(torch.zeros(rank, width))", "self.a, self.b = nn.Parameter(torch.randn(rank, width))")]
