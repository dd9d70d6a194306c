"""A division by a norm of zero inside a block under activation checkpointing, which runs its forward pass twice."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width, bias=False)

    def forward(self, x):
        h = self.fc(x)
        return x + h / h.abs().amax(-1, keepdim=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block(10) for _ in range(3)), nn.Linear(10, 2)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    g = torch.Generator().manual_seed(1)
    out = [[x, (x[:, 0] > x[:, 1]).long()] for x in (torch.randn(24, 10, generator=g) for _ in range(24))]
    out[5][0][11] = 0.0
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "blocks.0", "op": "aten.div", "kind": "nan", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("h.abs().amax(-1, keepdim=True)", "(h.abs().amax(-1, keepdim=True) + 1e-3)")]
