"""RMSprop on half-precision weights: the squared gradients underflow and eps 1e-8 rounds to 0, so the first step divides by zero."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.EmbeddingBag(60, 12), nn.Linear(12, 3)

    def forward(self, ids):
        return self.out(self.table(ids))


def build():
    torch.manual_seed(0)
    model = Net().half()
    return model, torch.optim.RMSprop(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(20):
        y = torch.randint(0, 3, (16,), generator=g)
        out.append((15 * y[:, None] + torch.randint(0, 15, (16, 5), generator=g), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["low-precision-state"],
    "first_nonfinite": {"phase": "optimizer", "module": "table.weight", "op": "RMSprop.step", "kind": "nan", "step": 0},
    "symptom": "weights-nonfinite",
}
REPAIR = [("RMSprop(model.parameters(), lr=1e-3)", "RMSprop(model.parameters(), lr=1e-3, eps=1e-3)")]
