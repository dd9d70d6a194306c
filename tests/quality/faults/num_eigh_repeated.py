"""The gradient of eigenvectors divides by differences of eigenvalues; the model starts at the identity, where all are equal."""

import torch
from torch import nn


class Axes(nn.Module):
    def __init__(self):
        super().__init__()
        self.shape = nn.Parameter(torch.eye(4) * SPREAD)

    def forward(self, x):
        _, axes = torch.linalg.eigh(self.shape @ self.shape.T)
        return x @ axes


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.axes, self.head = Axes(), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.relu(self.axes(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, x[:, :1].relu() + x[:, 1:2]) for x in (torch.randn(32, 4, generator=g) for _ in range(24))]


def loss(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


SPREAD = torch.tensor([1.0, 1.0, 1.0, 1.0])
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "initialisation"],
    "first_nonfinite": {"phase": "backward", "module": "axes", "op": "LinalgEighBackward0", "kind": "inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [("torch.tensor([1.0, 1.0, 1.0, 1.0])", "torch.tensor([1.0, 1.5, 2.0, 2.5])")]
