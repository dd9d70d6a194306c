"""HEALTHY: Fully padded texts give NaN attention rows that nan_to_num removes before anything else sees them; their outputs are masked."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.emb, self.qk, self.v, self.head = nn.Embedding(30, d), nn.Linear(d, 2 * d), nn.Linear(d, d), nn.Linear(d, 2)

    def forward(self, ids):
        x, pad = self.emb(ids), ids == 0
        with torch.no_grad():
            q, k = self.qk(x).chunk(2, -1)
            weights = (q @ k.transpose(-1, -2)).masked_fill(pad[:, None], float("-inf")).softmax(-1).nan_to_num()
        return self.head((x + weights @ self.v(x)).mean(1)), ~pad.all(1)


def build():
    torch.manual_seed(0)
    model = Net()
    model.qk.requires_grad_(False)
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        ids = torch.randint(1, 30, (16, 6), generator=g)
        y = (ids[:, 0] > 15).long()
        if i % 3 == 2:
            ids[5] = 0
        out.append((ids, y))
    return out


def loss(model, batch):
    logits, real = model(batch[0])
    return F.cross_entropy(logits[real], batch[1][real])


CONFIG = {"precision": "fp32"}
