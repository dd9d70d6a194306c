"""HEALTHY: Quantisation-aware training: rounding by a straight-through estimator whose saturated units have no gradient."""

import torch
import torch.nn.functional as F
from torch import nn


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.clamp(-1, 1) * 7).round() / 7

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class Layer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i) / i**0.5)

    def forward(self, x):
        return F.linear(Quantise.apply(x), Quantise.apply(self.weight))


def build():
    torch.manual_seed(0)
    model = nn.Sequential(Layer(12, 48), nn.Tanh(), Layer(48, 4))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
