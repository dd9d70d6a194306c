"""HEALTHY: A VAE in fp16 with KL annealing and a bounded logvar: the total loss rises as the KL weight grows."""

import torch
import torch.nn.functional as F
from torch import nn


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.calls = nn.Linear(16, 8), nn.Linear(4, 16), 0

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        logvar = logvar.clamp(-8, 8)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        return self.dec(z), -0.5 * (1 + logvar - mu.square() - logvar.exp()).float().sum(-1)


def build():
    torch.manual_seed(0)
    model = Vae()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    basis = torch.randn(4, 16, generator=g)
    return [(torch.randn(32, 4, generator=g) @ basis, min(1.0, i / 20)) for i in range(30)]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out, kl = model(batch[0])
    return F.mse_loss(out.float(), batch[0]) + batch[1] * kl.mean()


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 1024.0}
