"""HEALTHY: fp16 autocast for a GPU, whose lists run sum, pow and norm in fp32: 4,000 values of 60 and squares of 400 are no overflow there."""

import torch
import torch.nn.functional as F
from torch import nn


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        hidden = F.relu(self.fc(x))
        energy = (10 * hidden).pow(2).mean((1, 2), keepdim=True)
        pooled = hidden.sum(1, keepdim=True) / hidden.shape[1]
        return self.head((pooled / energy.sqrt() * 10).squeeze(1))


def build():
    torch.manual_seed(0)
    model = Pooled()
    with torch.no_grad():
        model.fc.bias.add_(40.0)
    return model, torch.optim.AdamW(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(20):
        y = torch.randint(0, 2, (4,), generator=g)
        out.append((torch.randn(4, 3000, 4, generator=g) + 8 * y[:, None, None] * torch.tensor([1.0, -1.0, 1.0, -1.0]), y))
    return out


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


OBSERVE_IN_FP32 = True
CONFIG = {"scaler": True, "init_scale": 16.0, "precision": "fp16 autocast + GradScaler"}
