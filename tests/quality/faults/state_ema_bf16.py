"""The averaged weights are kept in bf16 with a decay of 0.999: each update is a thousandth of the difference and rounds away."""

import torch
import torch.nn.functional as F
from torch import nn

AVERAGE_DTYPE = torch.bfloat16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.live = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
        self.average = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1)).requires_grad_(False)

    def forward(self, x):
        return self.live(x)


def build():
    torch.manual_seed(0)
    model = Net()
    model.average.load_state_dict(model.live.state_dict())
    model.average.to(AVERAGE_DTYPE)
    return model, torch.optim.Adam(model.live.parameters(), lr=2e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(64, 8, generator=g) for _ in range(40))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


@torch.no_grad()
def after_step(model):
    for average, live in zip(model.average.parameters(), model.live.parameters(), strict=True):
        average.lerp_(live.to(average.dtype), 0.001)


CONFIG = {"precision": "fp32, averaged weights in bf16"}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("AVERAGE_DTYPE = torch.bfloat16", "AVERAGE_DTYPE = torch.float32")]
