"""F.normalize in half precision: its eps of 1e-12 rounds to 0, a padding vector of zeros becomes 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


class Projector(nn.Module):
    def forward(self, x):
        return F.normalize(x, dim=-1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.unit, self.head = nn.Embedding(18, 12, padding_idx=0), Projector(), nn.Linear(12, 3)

    def forward(self, ids):
        return self.head(self.unit(self.emb(ids)).mean(1))


def build():
    torch.manual_seed(0)
    return (model := Net().to(DTYPE)), torch.optim.SGD(model.parameters(), lr=1.0)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        y = torch.randint(0, 3, (8,), generator=g)
        ids = 1 + 5 * y[:, None] + torch.randint(0, 5, (8, 6), generator=g)
        if i >= 3:
            ids[i % 8, 4:] = 0
        out.append((ids, y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["model-numerics", "fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "unit", "op": "aten.div", "kind": "nan", "step": 3},
    "symptom": "loss-nonfinite",
}
REPAIR = [("F.normalize(x, dim=-1)", "F.normalize(x, dim=-1, eps=1e-3)")]
