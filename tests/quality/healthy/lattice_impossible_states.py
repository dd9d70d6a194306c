"""HEALTHY: impossible states are -inf by masked_fill and logsumexp's gradient is NaN there; masked_fill's backward writes 0 over it."""

import torch
from torch import nn


class Lattice(nn.Module):
    def __init__(self):
        super().__init__()
        self.transition = nn.Parameter(torch.zeros(4, 4))

    def forward(self, emission, allowed):
        alpha = emission[:, 0]
        for t in range(1, emission.shape[1]):
            arc = (alpha[:, :, None] + self.transition).masked_fill(~allowed[:, t, None, :], float("-inf"))
            alpha = torch.logsumexp(arc, 1) + emission[:, t]
        return torch.logsumexp(alpha, 1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emit, self.lattice = nn.Linear(5, 4), Lattice()

    def forward(self, x, allowed):
        scores = self.emit(x)
        return self.lattice(scores, torch.ones_like(allowed)) - self.lattice(scores, allowed)


def build():
    torch.manual_seed(0)
    model = Tagger()
    return model, torch.optim.Adam(model.parameters(), lr=3e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(12):
        tags = torch.randint(0, 4, (6, 5), generator=g)
        x = torch.randn(6, 5, 5, generator=g)
        x[..., :4] += 2 * nn.functional.one_hot(tags, 4)
        out.append((x, nn.functional.one_hot(tags, 4).bool()))
    return out


def loss(model, batch):
    return model(*batch).mean()


CONFIG = {"precision": "fp32"}
