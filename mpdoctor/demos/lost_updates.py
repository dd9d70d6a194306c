"""bf16 weights that are too coarse for the steps that they are given.

Loss and gradients are fine, and the weights hardly move: bf16 has 8 significant bits, so that adding less than 1/256 of a weight changes
nothing. With fp32 master weights the same steps move them.
"""

import torch
from torch import nn
from torch.nn import functional as F


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.sign(parameter) * 0.5)
    model = model.to(torch.bfloat16)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0)


def batches():
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(32, 32, generator=generator), torch.randint(0, 8, (32,), generator=generator)) for _ in range(8)]


def loss(model, batch):
    inputs, labels = batch
    return F.cross_entropy(model(inputs.to(torch.bfloat16)).float(), labels)


CONFIG = {"precision": "bf16 weights", "scaler": False}
