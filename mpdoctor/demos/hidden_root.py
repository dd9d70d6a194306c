"""A square root of zero that torch.where hides, until the backward pass.

The loss is finite; only the gradients are nan. torch.where picks the right value in the forward pass, but autograd
still multiplies the derivative of sqrt at 0, which is infinite, by zero.
The report names the op that made the value and the line that wrote it. No precision and no learning rate helps.
"""

import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 8)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        squares = (self.embed(a) - self.embed(b)).square().sum(-1)
        return torch.where(squares > 0, squares.sqrt(), torch.zeros_like(squares))


def build():
    torch.manual_seed(0)
    model = Distance()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    generator = torch.Generator().manual_seed(1)
    made = [(torch.randn(8, 8, generator=generator), torch.randn(8, 8, generator=generator)) for _ in range(4)]
    made[2][1][3] = made[2][0][3]  # two equal points
    return made


def loss(model, batch):
    a, b = batch
    return (model(a, b) - 1).square().mean()


CONFIG = {"precision": "fp32", "scaler": False}
