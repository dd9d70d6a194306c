"""Six blocks add 12,000 each to a half-precision residual stream, in place: the sixth addition passes 65504."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, stream):
        out = self.fc(self.norm(stream))
        out += stream
        return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.blocks = nn.Linear(8, 16), nn.ModuleList(Block(16) for _ in range(6))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        for block in model.blocks:
            block.fc.bias[3] = 1.2e4
    return model.to(DTYPE), torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 3, generator=g)
    return [(x.to(DTYPE), (x @ teacher).argmax(1)) for x in (torch.randn(16, 8, generator=g) for _ in range(12))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "blocks.5", "op": "aten.add_", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.float32")]
