"""Binary codes come from round() without a straight-through estimator: the encoder's gradients are exactly zero."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, x):
        p = torch.sigmoid(self.enc(x))
        code = p.round()
        return self.dec(p + (code - p).detach() if STRAIGHT_THROUGH else code)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(24))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


STRAIGHT_THROUGH = False


CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop", "model-numerics"], "first_nonfinite": None, "symptom": "gradients exactly zero"}
REPAIR = [("STRAIGHT_THROUGH = False", "STRAIGHT_THROUGH = True")]
