"""A mixture density network takes the log of summed densities: far from every mode all of them are 0 and the log is -inf."""

import torch
import torch.nn.functional as F
from torch import nn


class Mdn(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(3, 24), nn.Linear(24, 12)

    def forward(self, x):
        pi, mu, sigma = self.out(torch.tanh(self.body(x))).chunk(3, -1)
        return pi.softmax(-1), mu, F.softplus(sigma) + 0.05


def build():
    torch.manual_seed(0)
    model = Mdn()
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(24):
        x = torch.randn(32, 3, generator=g)
        y = x.sum(-1, keepdim=True) * 0.5 + 0.1 * torch.randn(32, 1, generator=g)
        if i == 9:
            y[17] = 40.0
        out.append((x, y))
    return out


def loss(model, batch):
    pi, mu, sigma = model(batch[0])
    density = torch.exp(-0.5 * ((batch[1] - mu) / sigma).square()) / (sigma * 2.5066)
    return -torch.log((pi * density).sum(-1)).mean()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.log", "kind": "-inf", "step": 9},
    "symptom": "loss-nonfinite",
}
REPAIR = [
    ("    density = torch.exp(-0.5 * ((batch[1] - mu) / sigma).square()) / (sigma * 2.5066)\n", ""),
    ("torch.log((pi * density).sum(-1))", "torch.logsumexp(pi.log() - 0.5 * ((batch[1] - mu) / sigma).square() - sigma.log(), -1).clamp(min=-50)"),
]
