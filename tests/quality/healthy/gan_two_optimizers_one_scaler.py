"""HEALTHY: A GAN in fp16 with one GradScaler for two optimizers; the critic's loss rises as the generator learns."""

import torch
import torch.nn.functional as F
from torch import nn

CRITIC = []


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))
        self.critic = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))


def build():
    torch.manual_seed(0)
    model = Pair()
    CRITIC[:] = [torch.optim.Adam(model.critic.parameters(), lr=2e-3)]
    return model, torch.optim.Adam(model.generator.parameters(), lr=4e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randn(32, 2, generator=g) * 0.3 + 1, torch.randn(32, 3, generator=g)) for _ in range(30)]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        real, fake = model.critic(batch[0]), model.critic(model.generator(batch[1]).detach())
    return F.softplus(-real.float()).mean() + F.softplus(fake.float()).mean()


def step(model, optimizer, batch, scaler):
    critic = CRITIC[0]
    critic.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.unscale_(critic)
    torch.nn.utils.clip_grad_norm_(model.critic.parameters(), 1.0)
    scaler.step(critic)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        fooled = model.critic(model.generator(batch[1]))
    scaler.scale(F.softplus(-fooled.float()).mean()).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.generator.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 4096.0}
