"""A graph with an isolated node: its degree is 0 and the symmetric normalisation multiplies 0 by 1/sqrt(0)."""

import torch
import torch.nn.functional as F
from torch import nn


class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x, adjacency):
        degree = adjacency.sum(-1)
        inverse = degree.pow(-0.5)
        weights = inverse[:, :, None] * adjacency * inverse[:, None, :]
        return self.out(torch.relu(weights @ self.fc(x)).mean(1))


def build():
    torch.manual_seed(0)
    model = Gcn()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        x = torch.randn(8, 7, 6, generator=g)
        a = (torch.rand(8, 7, 7, generator=g) > 0.6).float()
        a = ((a + a.transpose(1, 2)) > 0).float()
        a[:, torch.arange(7), torch.arange(7)] = 1.0
        if i == 5:
            a[3, 2, :] = 0
            a[3, :, 2] = 0
        out.append((x, a, x.mean(1)[:, :3].argmax(-1)))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0], batch[1]), batch[2])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "", "op": "aten.pow", "kind": "inf", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("adjacency.sum(-1)", "adjacency.sum(-1).clamp(min=1)")]
