"""A healthy fp16 run, skipped steps included.

The dynamic loss scale starts too high, halves itself and skips a step each time: that is how it works, and the report says so.
Nothing else is wrong, and mpdoctor finds nothing else. Exit code 0.
"""

import torch
from torch import nn
from torch.nn import functional as F


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(16, 16, generator=generator), torch.randint(0, 4, (16,), generator=generator)) for _ in range(10)]


def loss(model, batch):
    inputs, labels = batch
    with torch.autocast("cuda", dtype=torch.float16):
        return F.cross_entropy(model(inputs), labels)


CONFIG = {"precision": "fp16", "scaler": True, "init_scale": 2.0**20}
