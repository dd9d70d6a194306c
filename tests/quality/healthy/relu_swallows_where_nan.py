"""HEALTHY: log of ReLU zeros hidden by where gives NaN gradients, but ReLU's backward selects, it does not multiply: they become 0."""

import torch
import torch.nn.functional as F
from torch import nn


class LogCompress(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, torch.log(x), torch.zeros_like(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.compress, self.head = nn.Conv1d(2, 8, 5), LogCompress(), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.compress(F.relu(self.conv(x))).mean(-1))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(24):
        y = torch.randint(0, 2, (16,), generator=g)
        out.append((torch.randn(16, 2, 24, generator=g) * (0.5 + y[:, None, None]), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
