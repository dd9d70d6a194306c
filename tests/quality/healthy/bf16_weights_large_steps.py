"""HEALTHY: weights in plain bf16, but SGD steps large enough to survive rounding: most elements move, the loss falls as in fp32."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 4)).to(torch.bfloat16)
    return model, torch.optim.SGD(model.parameters(), lr=0.5)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x.bfloat16(), (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


CONFIG = {"precision": "bf16 weights"}
