"""Fine-tuning of bf16 weights with SGD at 1e-3: the update is under half an ulp of nearly every weight and is rounded away."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv1d(4, 16, 3), nn.GroupNorm(4, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.head(F.silu(self.norm(self.conv(x))).mean(-1))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.where(p < 0, -0.4, 0.4) + p)
    return model.to(DTYPE), torch.optim.SGD(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(80):
        y = torch.randint(0, 2, (32,), generator=g)
        x = torch.randn(32, 4, 20, generator=g)
        x[:, 0] += 2 * y[:, None] - 1
        out.append((x.to(DTYPE), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


DTYPE = torch.bfloat16
CONFIG = {"precision": "bf16 weights"}
TRUTH = {"causes": ["low-precision-state"], "first_nonfinite": None, "symptom": "weights-not-moving"}
REPAIR = [("DTYPE = torch.bfloat16", "DTYPE = torch.float32")]
