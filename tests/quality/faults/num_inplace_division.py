"""Scores are divided in place by the number of neighbours of a node; one isolated node has none."""

import torch
import torch.nn.functional as F
from torch import nn


class MeanOfNeighbours(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x, edges):
        summed = torch.zeros_like(x).index_add(0, edges[1], self.fc(x)[edges[0]])
        degree = torch.zeros(len(x)).index_add(0, edges[1], torch.ones(edges.shape[1]))
        summed /= degree[:, None]
        return summed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = MeanOfNeighbours(8), MeanOfNeighbours(8), nn.Linear(8, 2)

    def forward(self, x, edges):
        return self.head(F.relu(self.two(F.relu(self.one(x, edges)), edges)) + x)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        x = torch.randn(20, 8, generator=g)
        ring = torch.arange(20)
        edges = torch.stack([ring, (ring + 1) % 20])
        if i == 5:
            edges = edges[:, KEPT]
        out.append((x, edges, (x[:, 0] > 0).long()))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0], batch[1]), batch[2])


KEPT = slice(0, 19)
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "one", "op": "aten.div_", "kind": "nan", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("KEPT = slice(0, 19)", "KEPT = slice(0, 20)")]
