"""A reward normaliser keeps its running sum of squares in fp16; it reaches inf and every reward is divided by inf from then on."""

import torch
import torch.nn.functional as F
from torch import nn


class Normalise(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("square_sum", torch.zeros((), dtype=KEEP))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, r):
        with torch.no_grad():
            self.square_sum += r.square().sum().to(KEEP)
            self.count += r.numel()
        return r / (self.square_sum.float() / self.count).sqrt()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.normalise = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1)), Normalise()

    def forward(self, s):
        return self.body(s)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(s, s.sum(-1, keepdim=True) * 10) for s in (torch.randn(16, 6, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), model.normalise(batch[1]))


KEEP = torch.float16


CONFIG = {"precision": "fp32, running sums in fp16"}
TRUTH = {
    "causes": ["low-precision-state", "fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "normalise", "op": "aten.add_", "kind": "inf", "step": 6},
    "symptom": "buffers-nonfinite",
}
REPAIR = [("KEEP = torch.float16", "KEEP = torch.float32")]
