"""A gradient penalty takes the root of the squared slope without an eps; where the critic is flat the slope is 0, the derivative infinite."""

import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score = nn.Linear(3, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.score(torch.relu(self.body(x)))


def build():
    torch.manual_seed(0)
    model = Critic()
    with torch.no_grad():
        model.body.bias.fill_(-0.5)
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = [[torch.randn(32, 3, generator=g) + 2, torch.randn(32, 3, generator=g) * 0.5 - 1] for _ in range(16)]
    for real, _ in out:
        real[7] = 0.0
    return out


def loss(model, batch):
    real, fake = batch
    x = real.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    penalty = ((slope * slope).sum(-1).sqrt() - 1).square().mean()
    return nn.functional.softplus(-model(real)).mean() + nn.functional.softplus(model(fake)).mean() + penalty


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "backward", "module": "", "op": "SqrtBackward0", "kind": "inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [("(slope * slope).sum(-1).sqrt()", "((slope * slope).sum(-1) + 1e-8).sqrt()")]
