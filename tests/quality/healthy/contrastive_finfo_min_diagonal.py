"""HEALTHY: NT-Xent in fp16 autocast for a GPU: self-similarity is filled with finfo.min, temperature 0.1; the loss goes near 0."""

import torch
import torch.nn.functional as F
from torch import nn


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def build():
    torch.manual_seed(0)
    model = Projector()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [x.repeat(2, 1) + 0.1 * torch.randn(24, 12, generator=g) for x in (torch.randn(12, 12, generator=g) for _ in range(24))]


def loss(model, views):
    with torch.autocast("cuda", dtype=torch.float16):
        z = model(views)
        similarity = z @ z.T / 0.1
        similarity = similarity.masked_fill(torch.eye(24, dtype=torch.bool), torch.finfo(similarity.dtype).min)
    return F.cross_entropy(similarity.float(), (torch.arange(24) + 12) % 24)


CONFIG = {"scaler": True, "init_scale": 512.0, "precision": "fp16 autocast + GradScaler"}
