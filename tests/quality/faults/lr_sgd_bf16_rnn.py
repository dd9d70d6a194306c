"""A hand-written recurrent net without a squashing function, bf16, momentum SGD: one large step and the state explodes in time."""

import torch
import torch.nn.functional as F
from torch import nn


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp, self.rec = nn.Linear(4, width), nn.Linear(width, width, bias=False)

    def forward(self, x):
        state = torch.zeros(x.shape[0], self.rec.in_features)
        for t in range(x.shape[1]):
            state = F.relu(self.inp(x[:, t]) + self.rec(state))
        return state


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = Cell(16), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.cell(x))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, x[:, -3:].sum((1, 2))[:, None]) for x in (torch.randn(8, 12, 4, generator=g) for _ in range(24))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.mse_loss", "kind": "inf", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lr=0.5, momentum=0.9", "lr=0.005, momentum=0.9")]
