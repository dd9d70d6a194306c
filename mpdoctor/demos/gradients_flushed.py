"""fp16 without loss scaling: the loss is finite and nothing is learned.

Nothing is nan here, and a log shows nothing but a loss that stays where it is.
"Measured" gives the window of loss scales that would carry these gradients; the run uses none.
The what-if run with dynamic loss scaling is the proof.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Regressor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(16, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.hidden(x)))


def build():
    torch.manual_seed(0)
    model = Regressor()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batches():
    generator = torch.Generator().manual_seed(1)
    made = []
    for _ in range(6):
        inputs = torch.randn(64, 16, generator=generator)
        made.append((inputs, inputs.sum(1, keepdim=True)))
    return made


def loss(model, batch):
    inputs, targets = batch
    with torch.autocast("cuda", dtype=torch.float16):
        predicted = model(inputs)
    return F.mse_loss(predicted.float(), targets) * 1e-9  # a loss in tiny units, as physics often has it


CONFIG = {"precision": "fp16", "scaler": False}
