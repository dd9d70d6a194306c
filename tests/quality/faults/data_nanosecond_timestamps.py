"""A feature in raw nanoseconds (1.7e18) goes into a squared distance: the products leave the range of fp32."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.head = nn.Linear(6, 24), nn.Linear(24, 1)

    def forward(self, x):
        h = self.fc(x)
        return self.head(h * h)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        x = torch.randn(16, 6, generator=g)
        y = x[:, :1].square() - x[:, 1:2]
        if i >= 5:
            x[4, 5] = STAMP
        out.append((x, y))
    return out


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


STAMP = 1.7e20


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "", "op": "aten.mul", "kind": "inf", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("STAMP = 1.7e20", "STAMP = 1.7")]
