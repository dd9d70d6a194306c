"""HEALTHY: bf16 weights updated with stochastic rounding: each element moves only sometimes, on average by the right amount."""

import torch
import torch.nn.functional as F
from torch import nn


class StochasticSgd(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                new = p.float() - group["lr"] * p.grad.float()
                bits = new.view(torch.int32) + torch.randint(0, 1 << 16, new.shape, dtype=torch.int32)
                p.copy_((bits & ~0xFFFF).view(torch.float32))


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)).to(torch.bfloat16)
    return model, StochasticSgd(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x.bfloat16(), (x @ teacher).argmax(1)) for x in (torch.randn(64, 12, generator=g) for _ in range(60))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


CONFIG = {"precision": "bf16 weights, stochastic rounding"}
