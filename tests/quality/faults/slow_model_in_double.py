"""CONFIG asks for bf16; a stray .double() on the model makes every product run in 64 bits."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 3)).to(DTYPE)
    return model, torch.optim.SGD(model.parameters(), lr=0.3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(16, 3, generator=g)
    return [(x.to(DTYPE), (x @ teacher).argmax(1)) for x in (torch.randn(64, 16, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


DTYPE = torch.float64
CONFIG = {"precision": "bf16"}
TRUTH = {"causes": ["slow-precision"], "first_nonfinite": None, "symptom": "slow-precision"}
REPAIR = [("DTYPE = torch.float64", "DTYPE = torch.bfloat16")]
