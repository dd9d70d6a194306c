"""The batches get larger from step to step (a curriculum), until fp16 cannot hold a layer: it looks like divergence, and no rate would help."""

import torch
import torch.nn.functional as F
from torch import nn

LARGEST = 20000.0


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(12, 48)
        self.head = nn.Linear(48, 5)
        nn.init.constant_(self.head.bias, 0.0)

    def forward(self, x):
        return self.head(40.0 * torch.relu(self.features(x)))


def build():
    torch.manual_seed(0)
    model = Scorer()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def batches():
    g = torch.Generator().manual_seed(1)
    sizes = [1.0, 5.0, 20.0, 100.0, LARGEST, 5.0]
    return [(size * torch.randn(8, 12, generator=g).clamp(-3, 3), torch.randint(0, 5, (8,), generator=g)) for size in sizes]


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        scores = model(batch[0])
    value = F.cross_entropy(scores.float() / 100.0, batch[1])
    return value


CONFIG = {"scaler": True, "init_scale": 16.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "", "op": "aten.mul", "kind": "inf", "step": 4},
    "symptom": "loss-nonfinite",
}
REPAIR = [("LARGEST = 20000.0", "LARGEST = 200.0")]
