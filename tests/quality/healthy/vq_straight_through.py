"""HEALTHY: VQ-VAE with straight-through codes and a moving-average codebook in fp32; some codes are never used."""

import torch
import torch.nn.functional as F
from torch import nn


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.randn(32, 4))
        self.register_buffer("count", torch.ones(32))

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(-1)
        with torch.no_grad():
            hot = F.one_hot(index, 32).float()
            self.count.mul_(0.9).add_(0.1 * hot.sum(0))
            used = hot.sum(0) > 0
            mean = hot.T @ z / hot.sum(0).clamp(min=1)[:, None]
            self.codes[used] += 0.1 * (mean - self.codes)[used]
        code = self.codes[index]
        return z + (code - z).detach(), F.mse_loss(z, code)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.vq, self.dec = nn.Linear(10, 4), Codebook(), nn.Linear(4, 10)

    def forward(self, x):
        z, commit = self.vq(self.enc(x))
        return self.dec(z), commit


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    basis = torch.randn(3, 10, generator=g)
    return [torch.randn(32, 3, generator=g) @ basis for _ in range(24)]


def loss(model, batch):
    out, commit = model(batch)
    return F.mse_loss(out, batch) + 0.25 * commit


CONFIG = {"precision": "fp32"}
