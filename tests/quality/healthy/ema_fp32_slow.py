"""HEALTHY: an fp32 average with a decay of 0.9999: it moves by a hundredth of a percent per step, as it should."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.live = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
        self.average = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2)).requires_grad_(False)

    def forward(self, x):
        return self.live(x)


def build():
    torch.manual_seed(0)
    model = Net()
    model.average.load_state_dict(model.live.state_dict())
    return model, torch.optim.AdamW(model.live.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, (x[:, 0] > x[:, 1]).long()) for x in (torch.randn(32, 8, generator=g) for _ in range(24))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


@torch.no_grad()
def after_step(model):
    for average, live in zip(model.average.parameters(), model.live.parameters(), strict=True):
        average.lerp_(live, 1e-4)


CONFIG = {"precision": "bf16 autocast"}
