"""The model was cast to bf16, one layer's output was not cast back: two dtypes meet in a product, which torch refuses."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(12, 24)
        self.norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.norm(self.inner(x).float()))


def build():
    torch.manual_seed(0)
    model = Net().to(torch.bfloat16)
    model.norm.float()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(32, 12, generator=g) for _ in range(24)]
    return [(x.bfloat16(), x[:, :3].argmax(1)) for x in rows]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]).float(), batch[1])


CONFIG = {"precision": "bf16 params"}
TRUTH = {
    "causes": ["model-numerics", "low-precision-state"],
    "first_nonfinite": None,
    "raises": {"phase": "forward", "module": "head", "op": "aten.addmm", "step": 0},
    "symptom": "exception",
}
REPAIR = [("self.norm(self.inner(x).float())", "self.norm(self.inner(x).float()).to(torch.bfloat16)")]
