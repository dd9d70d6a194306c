"""HEALTHY: two tasks alternate from batch to batch: each head has no gradient in every second step, and the loss jumps between two scales."""

import torch
import torch.nn.functional as F
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.words, self.price = nn.Linear(6, 24), nn.Linear(24, 5), nn.Linear(24, 1)


def build():
    torch.manual_seed(0)
    model = TwoHeads()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 6, generator=g)
    out = []
    for i in range(30):
        x = torch.randn(32, 6, generator=g)
        y = x @ teacher
        out.append((x, y[:, :5].argmax(1)) if i % 2 else (x, 5 * y[:, 5:]))
    return out


def loss(model, batch):
    x, y = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = F.gelu(model.body(x))
        out = model.price(hidden) if y.is_floating_point() else model.words(hidden)
    return F.smooth_l1_loss(out.float(), y) if y.is_floating_point() else F.cross_entropy(out.float(), y)


CONFIG = {"precision": "bf16 autocast"}
