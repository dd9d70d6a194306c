"""Pixels of 0 to 255 were never normalised and the filters are large: the second convolution passes 65504."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.body, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.Linear(8, 2)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.norm(self.body(x)))
        return self.head(x.mean((2, 3)))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.stem.weight.mul_(6)
        model.body.weight.mul_(4000)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        x = 255 * torch.rand(8, 3, 10, 10, generator=g)
        y = torch.randint(0, 2, (8,), generator=g)
        x[:, 0] *= 0.4 + 0.6 * y[:, None, None]
        out.append((x, y))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": True, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "body", "op": "aten.convolution", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.float16", "torch.bfloat16")]
