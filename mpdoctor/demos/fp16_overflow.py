"""A model that was trained in bf16 overflows in fp16.

The headline names the module, the op and the line, and the exact value that fp16 could not hold.
"What-if runs" shows the proof: the same step in bf16 is finite, while another batch fails in the same way.
The loss is nan, but the first bad value is an inf, made in the forward pass: no loss scale can help.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), Block(), Block(), nn.LayerNorm(32), nn.Linear(32, 4))
    with torch.no_grad():  # weights that a run in bf16 may well grow
        model[2].up.weight.mul_(700)
        model[2].down.weight.mul_(900)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def batches():
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 16, generator=generator), torch.randint(0, 4, (8,), generator=generator)) for _ in range(4)]


def loss(model, batch):
    inputs, labels = batch
    with torch.autocast("cuda", dtype=torch.float16):
        return F.cross_entropy(model(inputs), labels)


CONFIG = {"precision": "fp16", "scaler": True}
