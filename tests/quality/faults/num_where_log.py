"""log is taken of values rectified by x * (x > 0) and the zeros are hidden by where: the forward pass is clean, its gradient is 0 * inf."""

import torch
import torch.nn.functional as F
from torch import nn


class LogCompress(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, torch.log(x), torch.zeros_like(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.compress, self.head = nn.Conv1d(2, 8, 5), LogCompress(), nn.Linear(8, 2)

    @staticmethod
    def rectify(x):
        return x * (x > 0)

    def forward(self, x):
        return self.head(self.compress(self.rectify(self.conv(x))).mean(-1))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(24):
        y = torch.randint(0, 2, (16,), generator=g)
        out.append((torch.randn(16, 2, 24, generator=g) * (0.5 + y[:, None, None]), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    # log(0) itself is hidden for good; what hurts is made afresh in backward: a gradient of 0 over an input of 0
    "first_nonfinite": {"phase": "backward", "module": "compress", "op": "LogBackward0", "kind": "nan", "step": 0},
    "also": [{"phase": "forward", "module": "compress", "op": "aten.log", "kind": "-inf", "step": 0}],
    "symptom": "grad-nonfinite",
}
REPAIR = [("torch.log(x)", "torch.log(x.clamp(min=1e-3))")]
