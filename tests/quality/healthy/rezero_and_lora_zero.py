"""HEALTHY: ReZero gates and a LoRA B matrix start at exactly 0: half of the parameters have gradients of exactly 0 at the first step."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc, self.gate = nn.Linear(d, d), nn.Parameter(torch.zeros(1))
        self.a, self.b = nn.Parameter(torch.randn(2, d)), nn.Parameter(torch.zeros(d, 2))

    def forward(self, x):
        return x + self.gate * torch.tanh(self.fc(x)) + x @ self.a.T @ self.b.T


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), Block(24), Block(24), nn.Linear(24, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
