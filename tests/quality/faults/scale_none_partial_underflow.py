"""fp16 autocast without a loss scale: the head trains, but mean pooling divides the encoder's gradients by 6,000 and they flush to zero."""

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(12):
        y = torch.randint(0, 2, (8,), generator=g)
        out.append((torch.randn(8, 6000, 8, generator=g) + 0.2 * (2 * y[:, None, None] - 1), y))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": False, "precision": "fp16 autocast"}
TRUTH = {"causes": ["loss-scaling"], "first_nonfinite": None, "symptom": "grad-norm-collapse"}
REPAIR = [('"scaler": False', '"scaler": True')]
