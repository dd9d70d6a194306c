"""log with an eps of 1e-8 on half-precision probabilities: 1e-8 is 0 there, and a p of exactly 0 gives log(0)."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3), nn.Softmax(-1))
    with torch.no_grad():
        model[2].weight.mul_(GAIN)
    return model.half(), torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 3, generator=g)
    return [(x.half(), (x @ teacher).argmax(1)) for x in (torch.randn(32, 6, generator=g) for _ in range(16))]


def loss(model, batch):
    p = model(batch[0]).gather(1, batch[1][:, None])
    return -torch.log(p + 1e-8).mean()


GAIN = 80.0
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["model-numerics", "fp16-range"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.log", "kind": "-inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("p + 1e-8", "p + 1e-3"), ("GAIN = 80.0", "GAIN = 4.0")]
