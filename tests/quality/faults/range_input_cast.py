"""Every row has a column in plain currency units (80,000 to 200,000): autocast casts it to fp16, where it is infinite."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 16), nn.Linear(16, 1)
        with torch.no_grad():
            self.first.weight[:, 4] *= 1e-5

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=2e-4)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(20):
        x = torch.randn(16, 5, generator=g)
        x[:, 4] = 8e4 + 1.2e5 * torch.rand(16, generator=g)
        out.append((x, x[:, :1] + x[:, 4:] / 1e5))
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(batch[0])
    return F.smooth_l1_loss(out.float(), batch[1])


CONFIG = {"scaler": True, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "first", "op": "aten._to_copy", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.float16", "torch.bfloat16")]
