"""A router renormalises the gates that are left after capacity dropping: a token that lost all its experts divides 0 by 0."""

import torch
import torch.nn.functional as F
from torch import nn


class Moe(nn.Module):
    def __init__(self, d=12, experts=4, capacity=6):
        super().__init__()
        self.router, self.capacity = nn.Linear(d, experts), capacity
        self.experts = nn.ModuleList(nn.Linear(d, d) for _ in range(experts))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        top = torch.zeros_like(gates).scatter(-1, gates.topk(2, -1).indices, 1.0)
        place = top.cumsum(0) * top
        kept = gates * top * (place <= self.capacity)
        kept = kept / kept.sum(-1, keepdim=True)
        return x + sum(kept[:, i : i + 1] * e(x) for i, e in enumerate(self.experts))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.moe, self.head = nn.Linear(8, 12), Moe(), nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.moe(self.inp(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(16, 8, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "moe", "op": "aten.div", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("kept / kept.sum(-1, keepdim=True)", "kept / kept.sum(-1, keepdim=True).clamp(min=1e-6)")]
