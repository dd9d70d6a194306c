"""A covariance of fewer samples than dimensions is singular: the Cholesky factorisation raises in the forward pass."""

import torch
from torch import nn


class Whiten(nn.Module):
    def forward(self, x):
        centred = x - x.mean(0)
        factor = torch.linalg.cholesky(centred.T @ centred / (len(x) - 1) + RIDGE * torch.eye(x.shape[1]))
        return torch.linalg.solve_triangular(factor, centred.T, upper=False).T


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.whiten, self.head = nn.Linear(8, 6), Whiten(), nn.Linear(6, 1)

    def forward(self, x):
        return self.head(self.whiten(self.fc(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(20):
        x = torch.randn(4 if i == 7 else 48, 8, generator=g)
        out.append((x, x[:, :1] - x[:, :1].mean()))
    return out


def loss(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


RIDGE = -1e-6
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": None,
    "raises": {"phase": "forward", "module": "whiten", "op": "", "step": 7},
    "symptom": "exception",
}
REPAIR = [("RIDGE = -1e-6", "RIDGE = 1e-2")]
