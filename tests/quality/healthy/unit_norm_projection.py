"""HEALTHY: After each step the rows of the embedding are projected back to unit length."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(40, 8), nn.Linear(8, 4)

    def forward(self, ids):
        return self.head(self.emb(ids))


def build():
    torch.manual_seed(0)
    model = Net()
    after_step(model)
    return model, torch.optim.Adam(model.parameters(), lr=3e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(ids, ids % 4) for ids in (torch.randint(0, 40, (32,), generator=g) for _ in range(30))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


@torch.no_grad()
def after_step(model):
    model.emb.weight.copy_(F.normalize(model.emb.weight, dim=-1))


CONFIG = {"precision": "fp32"}
