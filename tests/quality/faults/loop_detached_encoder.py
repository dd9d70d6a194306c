"""The features are detached on their way to the head: the encoder is in the optimizer but never gets a gradient."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(9, 24), nn.GELU(), nn.Linear(24, 12))
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        features = self.encoder(x)
        return self.head(features.detach())


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(9, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 9, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "gradients-missing"}
REPAIR = [("features.detach()", "features")]
