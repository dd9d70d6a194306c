"""HEALTHY: missing targets are NaN in the batch and are selected away before the loss; missing inputs are replaced by 0 with a flag beside them."""

import torch
from torch import nn


class Imputed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 3))

    def forward(self, x):
        known = ~x.isnan()
        return self.net(torch.cat([torch.nan_to_num(x), known.float()], -1))


def build():
    torch.manual_seed(0)
    model = Imputed()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 3, generator=g)
    out = []
    for _ in range(30):
        x = torch.randn(32, 6, generator=g)
        y = x @ teacher
        x[torch.rand(32, 6, generator=g) < 0.1] = float("nan")
        y[torch.rand(32, 3, generator=g) < 0.3] = float("nan")
        out.append((x, y))
    return out


def loss(model, batch):
    known = ~batch[1].isnan()
    return (model(batch[0])[known] - batch[1][known]).square().mean()


CONFIG = {"precision": "fp32"}
