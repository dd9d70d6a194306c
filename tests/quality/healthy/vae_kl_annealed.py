"""HEALTHY: a VAE whose KL weight starts at exactly 0 and rises: the loss goes up and down with it and ends where it began; bf16 autocast."""

import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(10, 8), nn.Sequential(nn.Linear(4, 24), nn.SiLU(), nn.Linear(24, 10))

    def forward(self, x, noise):
        mean, log_variance = self.encode(x).chunk(2, -1)
        return self.decode(mean + (0.5 * log_variance).exp() * noise), mean, log_variance


def build():
    torch.manual_seed(0)
    model = VAE()
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    basis = torch.randn(3, 10, generator=g)
    return [(torch.randn(32, 3, generator=g) @ basis, torch.randn(32, 4, generator=g), min(1.0, max(0, i - 2) / 15)) for i in range(30)]


def loss(model, batch):
    x, noise, weight = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, mean, log_variance = model(x, noise)
    mean, log_variance = mean.float(), log_variance.float()
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1).mean()
    return F.mse_loss(out.float(), x) + weight * divergence


CONFIG = {"precision": "bf16 autocast"}
