"""Half-precision weights around 8 with SGD at 2e-3: half an ulp there is 0.004, no update reaches it."""

import torch
import torch.nn.functional as F
from torch import nn


class Gains(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.full((10,), 8.0))

    def forward(self, x):
        return (x * self.gain).sum(-1, keepdim=True)


def build():
    torch.manual_seed(0)
    model = Gains().to(DTYPE)
    return model, torch.optim.SGD(model.parameters(), lr=2e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.linspace(6, 10, 10)[:, None]
    return [((x / 3).to(DTYPE), (x / 3) @ teacher) for x in (torch.randn(32, 10, generator=g) for _ in range(120))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]).float(), batch[1])


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
