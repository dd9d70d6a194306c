"""Causal linear attention keeps a running sum of keys in half precision: after some thousand positions it passes 65504."""

import torch
import torch.nn.functional as F
from torch import nn


class RunningMean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key = nn.Linear(width, width)

    def forward(self, x):
        k = F.elu(self.key(x)) + 1
        return (k * GAIN).cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None] / GAIN


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.head = RunningMean(4), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.mean(x)[:, -1])


def build():
    torch.manual_seed(0)
    model = Net()
    return model.to(DTYPE), torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(12):
        shift = torch.rand(8, 1, generator=g)
        out.append(((torch.randn(8, 1500, 4, generator=g) * 0.3 + shift[:, :, None]).to(DTYPE), shift.to(DTYPE)))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]).float(), batch[1].float())


GAIN = 64.0
DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "mean", "op": "aten.cumsum", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
