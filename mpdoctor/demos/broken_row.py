"""One broken row in one batch.

The report names the step and the row of the batch, and the what-if run without that row passes.
Changing the precision does not help: the first bad value is in the input.
"""

import torch
from torch import nn
from torch.nn import functional as F


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    generator = torch.Generator().manual_seed(1)
    made = [(torch.randn(8, 16, generator=generator), torch.randint(0, 4, (8,), generator=generator)) for _ in range(5)]
    made[3][0][5, 2] = float("nan")  # a sensor that was off for one sample
    return made


def loss(model, batch):
    inputs, labels = batch
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return F.cross_entropy(model(inputs), labels)


CONFIG = {"precision": "bf16", "scaler": False}
