"""fp16 autocast without a loss scale: the head trains, but the encoder's gradients are multiplied by 1e-6 on their way and flush to zero."""

import torch
import torch.nn.functional as F
from torch import nn

GRADIENT_MULTIPLIER = 1e-6


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x * GRADIENT_MULTIPLIER + (x * (1 - GRADIENT_MULTIPLIER)).detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.encoder(x))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        x = torch.randn(64, 12, generator=g)
        out.append((x, (x[:, 0] + x[:, 1] > 0).long()))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": False, "precision": "fp16 autocast"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [('"scaler": False', '"scaler": True')]
