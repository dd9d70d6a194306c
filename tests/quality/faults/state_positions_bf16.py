"""The whole model is cast to bf16, the position buffer with it: positions above 256 fall on each other and cannot be told apart."""

import torch
import torch.nn.functional as F
from torch import nn


class Rotary(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("positions", torch.arange(length).float())
        self.register_buffer("frequency", 3.14159 / 2 ** torch.arange(width // 2).float())

    def forward(self, x):
        angle = self.positions[:, None].float() * self.frequency.float()
        return x + torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.rotary, self.out = nn.Linear(2, 32), Rotary(600, 32), nn.Linear(32, 2)

    def forward(self, x):
        return self.out(F.gelu(self.rotary(self.inp(x))))


def build():
    torch.manual_seed(0)
    model = Net()
    model.to(torch.bfloat16)
    return model, torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    label = (torch.arange(600) % 2).expand(2, 600)
    return [(torch.randn(2, 600, 2, generator=g).bfloat16(), label) for _ in range(20)]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).flatten(0, 1).float(), batch[1].flatten())


CONFIG = {"precision": "bf16 weights and buffers"}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "loss-not-moving"}
REPAIR = [("    model.to(torch.bfloat16)\n", "    model.to(torch.bfloat16)\n    model.rotary.positions = torch.arange(600).float()\n")]
