"""A hand-written batch norm in half precision takes E[x^2] of activations around 300: 90,000 is infinite, and inf - inf is NaN."""

import torch
import torch.nn.functional as F
from torch import nn


class BatchNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(0)
        variance = (x * x).mean(0) - mean * mean
        return (x - mean) * torch.rsqrt(variance + 1e-2) * self.gain + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc, self.head = BatchNorm(6), nn.Linear(6, 24), nn.Linear(24, 3)

    def forward(self, x):
        return self.head(F.relu(self.fc(self.norm(x))))


def build():
    torch.manual_seed(0)
    model = Net()
    return model.to(DTYPE), torch.optim.SGD(model.parameters(), lr=0.2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 3, generator=g)
    return [((300 + 8 * x).to(DTYPE), (x @ teacher).argmax(1)) for x in (torch.randn(32, 6, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["fp16-range", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "norm", "op": "aten.mul", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
