"""HEALTHY: bf16 weights with Kahan summation: most single updates round away and are kept in a compensation buffer."""

import torch
import torch.nn.functional as F
from torch import nn


class KahanSgd(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                c = self.state[p].setdefault("compensation", torch.zeros_like(p))
                update = c - group["lr"] * p.grad
                new = p + update
                c.copy_(update - (new - p))
                p.copy_(new)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)).to(torch.bfloat16)
    return model, KahanSgd(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x.bfloat16(), (x @ teacher).argmax(1)) for x in (torch.randn(64, 12, generator=g) for _ in range(60))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


CONFIG = {"precision": "bf16 weights, Kahan summation"}
