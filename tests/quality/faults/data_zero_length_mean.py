"""Masked mean pooling divides by the number of visible tokens: one sequence has length 0."""

import torch
import torch.nn.functional as F
from torch import nn


class MeanPool(nn.Module):
    def forward(self, x, lengths):
        visible = (torch.arange(x.shape[1]) < lengths[:, None]).to(x.dtype)
        return (x * visible.unsqueeze(-1)).sum(1) / lengths[:, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.pool, self.head = nn.Linear(5, 20), MeanPool(), nn.Linear(20, 3)

    def forward(self, x, lengths):
        return self.head(self.pool(F.relu(self.fc(x)), lengths))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        lengths = torch.randint(3, 13, (12,), generator=g)
        y = torch.randint(0, 3, (12,), generator=g)
        x = torch.randn(12, 12, 5, generator=g)
        x[torch.arange(12), :, y] += 1.5
        if i == 4:
            lengths[7] = 0
        out.append((x, lengths, y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0], batch[1]), batch[2])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "pool", "op": "aten.div", "kind": "nan", "step": 4},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lengths[7] = 0", "lengths[7] = 1")]
