"""Sum pooling over 4,000 positions in half precision: each value is below 60, the sum passes 65504."""

import torch
import torch.nn.functional as F
from torch import nn


class SumPool(nn.Module):
    def forward(self, x):
        return x.sum(1) / x.shape[1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.pool, self.head = nn.Linear(4, 8), SumPool(), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.pool(F.relu(self.fc(x))))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.fc.bias.add_(25.0)
    return model.to(DTYPE), torch.optim.SGD(model.parameters(), lr=2e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(10):
        y = torch.randint(0, 2, (8,), generator=g)
        x = torch.randn(8, 4000, 4, generator=g) + 3 * y[:, None, None]
        out.append((x.to(DTYPE), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "pool", "op": "aten.sum", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
