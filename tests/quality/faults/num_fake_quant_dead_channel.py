"""Fake quantisation scales each channel by its maximum / 127: a channel that is all zero divides 0 by 0."""

import torch
import torch.nn.functional as F
from torch import nn


class Quantise(nn.Module):
    def forward(self, x):
        scale = x.abs().amax((0, 2, 3), keepdim=True) / 127
        q = x / scale
        q = q + (q.round() - q).detach()
        return q * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.quantise, self.out = nn.Conv2d(1, 6, 3), Quantise(), nn.Conv2d(6, 2, 3)

    def forward(self, x):
        return self.out(self.quantise(F.relu(self.conv(x)))).mean((-1, -2))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.conv.weight[4] = -0.3
        model.conv.bias.fill_(0.0)
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        y = torch.randint(0, 2, (16,), generator=g)
        x = torch.rand(16, 1, 8, 8, generator=g) * (1.0 + y[:, None, None, None])
        out.append((x - (0.5 if i < 3 else 0.0), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "quantise", "op": "aten.div", "kind": "nan", "step": 3},
    "symptom": "loss-nonfinite",
}
REPAIR = [("keepdim=True) / 127", "keepdim=True).clamp(min=1e-6) / 127")]
