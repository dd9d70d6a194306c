"""Queries and keys of a model trained in bf16 are large: their products pass 65504 before the division by sqrt(d)."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.attn, self.norm, self.head = nn.Embedding(24, 32), Attention(32, 2), nn.LayerNorm(32), nn.Linear(32, 24)

    def forward(self, ids):
        x = self.emb(ids)
        return self.head(self.norm(x + self.attn(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.attn.qkv.weight[:64].mul_(500)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 24, (8, 1), generator=g) + 5 * torch.arange(9)) % 24 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


CONFIG = {"scaler": True, "clip": 1.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "attn", "op": "aten.bmm", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.float16", "torch.bfloat16")]
