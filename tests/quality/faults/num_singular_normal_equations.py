"""A differentiable least-squares layer solves X'X w = X'y without a ridge; a batch with a repeated column is singular."""

import torch
import torch.nn.functional as F
from torch import nn


class Solve(nn.Module):
    def forward(self, h, y):
        gram = h.transpose(1, 2) @ h
        return torch.linalg.solve(gram + RIDGE * torch.eye(h.shape[-1]), h.transpose(1, 2) @ y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.solve = nn.Linear(3, 3, bias=False), Solve()

    def forward(self, x, y, query):
        return self.embed(query) @ self.solve(self.embed(x), y)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(12):
        x, query, w = (torch.randn(4, 10, 3, generator=g), torch.randn(4, 5, 3, generator=g), torch.randn(4, 3, 1, generator=g))
        out.append((x, torch.sin(x @ w), query, torch.sin(query @ w)))
    out[4][0][2] = 0.0
    return out


def loss(model, batch):
    x, y, query, target = batch
    return F.mse_loss(model(x, y, query), target)


RIDGE = 0.0


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": None,
    "symptom": "exception",
    "raises": {"phase": "forward", "module": "solve", "op": "", "kind": "exception", "step": 4},
}
REPAIR = [("RIDGE = 0.0", "RIDGE = 0.1")]
