"""The backbone runs under no_grad, left over from feature extraction, although its parameters are meant to train."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv1d(2, 12, 3, padding=1), nn.ReLU(), nn.Conv1d(12, 12, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        with torch.set_grad_enabled(TRAIN_BACKBONE):
            features = self.backbone(x)
        return self.head(features.mean(-1))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        y = torch.randint(0, 2, (16,), generator=g)
        out.append((torch.randn(16, 2, 20, generator=g) + 0.3 * (2 * y[:, None, None] - 1), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


TRAIN_BACKBONE = False
CONFIG = {"precision": "fp32"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "gradients-missing"}
REPAIR = [("TRAIN_BACKBONE = False", "TRAIN_BACKBONE = True")]
