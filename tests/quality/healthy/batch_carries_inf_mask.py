"""HEALTHY: the collator builds an additive attention mask of 0 and -inf: the batch holds infinities, softmax consumes them."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        return (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + mask).softmax(-1) @ v


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.attn, self.head = nn.Embedding(20, 16), Attention(16), nn.Linear(16, 20)

    def forward(self, ids, mask):
        x = self.emb(ids)
        return self.head(x + self.attn(x, mask))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    causal = torch.full((8, 8), float("-inf")).triu(1)
    out = []
    for _ in range(20):
        ids = (torch.randint(0, 20, (4, 1), generator=g) + 3 * torch.arange(9)) % 20
        out.append({"ids": ids, "mask": causal})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch["ids"][:, :-1], batch["mask"])
    return F.cross_entropy(logits.flatten(0, 1).float(), batch["ids"][:, 1:].flatten())


CONFIG = {"precision": "bf16 autocast"}
