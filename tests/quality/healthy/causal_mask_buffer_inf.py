"""HEALTHY: the causal mask is a registered buffer full of -inf, added to the scores of every layer; fp16 autocast with a scaler."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + self.mask
        return x + self.out(scores.softmax(-1) @ v)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 24), Block(24, 8), Block(24, 8), nn.Linear(24, 20))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 20, (4, 1), generator=g) + 7 * torch.arange(9)) % 20 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


CONFIG = {"scaler": True, "init_scale": 512.0, "clip": 1.0, "precision": "fp16 autocast + GradScaler"}
