"""Volume rendering: the log of a cumulative product of (1 - alpha) that reaches 0 along an opaque ray."""

import torch
import torch.nn.functional as F
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.sigma, self.colour = nn.Linear(3, 24), nn.Linear(24, 1), nn.Linear(24, 3)

    def forward(self, points):
        h = torch.relu(self.body(points))
        alpha = 1 - torch.exp(-F.softplus(self.sigma(h)).squeeze(-1) * 2)
        through = torch.cumprod(1 - alpha, -1)
        weight = torch.exp(torch.log(through) + torch.log(alpha))
        return (weight[..., None] * torch.sigmoid(self.colour(h))).sum(1)


def build():
    torch.manual_seed(0)
    model = Field()
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        points = torch.rand(16, 24, 3, generator=g)
        if i == 8:
            points[7] *= 400
        out.append((points, torch.rand(16, 3, generator=g) * 0.2 + points[:, 0].clamp(max=1) * 0.3))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "", "op": "aten.log", "kind": "-inf", "step": 8},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.exp(torch.log(through) + torch.log(alpha))", "through * alpha")]
