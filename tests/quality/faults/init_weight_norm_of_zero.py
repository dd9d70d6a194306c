"""A last layer under weight norm was zero-initialised: the direction is 0 / |0|."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


def build():
    torch.manual_seed(0)
    last = nn.Linear(24, 3)
    nn.init.constant_(last.weight, FILL)
    last.weight.data[:, ::2] *= -1
    model = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), last)
    model[2] = weight_norm(model[2])
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 9, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


FILL = 0.0


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["initialisation", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "2.parametrizations.weight.0", "op": "aten._weight_norm_interface", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("FILL = 0.0", "FILL = 0.1")]
