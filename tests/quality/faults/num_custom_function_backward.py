"""A custom autograd function for x * log(x) defines 0 at 0 in its forward, but its backward takes log(0)."""

import torch
import torch.nn.functional as F
from torch import nn


class XLogX(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x * torch.log(x.clamp(min=1e-30)), 0.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (torch.log(x) + 1)


class Sharpen(nn.Module):
    def forward(self, x):
        return XLogX.apply(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.sharpen, self.head = nn.Linear(5, 16), Sharpen(), nn.Linear(16, 2)

    def forward(self, x):
        hidden = self.fc(x)
        return self.head(self.sharpen(hidden * (hidden > 0)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.6)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] + x[:, 1] > 0).long()) for x in (torch.randn(32, 5, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "backward", "module": "sharpen", "op": "XLogXBackward", "kind": "-inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [("torch.log(x) + 1)", "torch.log(x.clamp(min=1e-4)) + 1)")]
