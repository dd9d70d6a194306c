"""The contrastive temperature is initialised to 100 and then exponentiated: exp(100) is beyond fp32."""

import torch
import torch.nn.functional as F
from torch import nn


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(16, 24), nn.Linear(12, 24)
        self.logit_scale = nn.Parameter(torch.tensor(INIT))

    def forward(self, a, b):
        return self.logit_scale.exp() * F.normalize(self.left(a), dim=-1) @ F.normalize(self.right(b), dim=-1).T


def build():
    torch.manual_seed(0)
    model = Clip()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    one, two = torch.randn(6, 16, generator=g), torch.randn(6, 12, generator=g)
    return [(z @ one, z @ two) for z in (torch.randn(16, 6, generator=g) for _ in range(16))]


def loss(model, batch):
    logits = model(*batch)
    return F.cross_entropy(logits, torch.arange(len(logits)))


INIT = 100.0


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["initialisation", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "", "op": "aten.exp", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("INIT = 100.0", "INIT = 2.6")]
