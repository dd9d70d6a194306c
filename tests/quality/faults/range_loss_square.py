"""A hand-written squared error on half-precision predictions of house prices in thousands: 300 squared passes 65504."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    return model.to(DTYPE), torch.optim.SGD(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x.to(DTYPE), (350 + 40 * (x @ teacher)).to(DTYPE)) for x in (torch.randn(16, 8, generator=g) for _ in range(16))]


def loss(model, batch):
    error = model(batch[0]) - batch[1]
    return (error * error).mean()


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mul", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
