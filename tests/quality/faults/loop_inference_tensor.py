"""Features are cached under inference_mode and then used in a layer that is trained: autograd cannot save them."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(12, 24).requires_grad_(False), nn.Linear(24, 4)

    def forward(self, x):
        with GUARD():
            h = torch.relu(self.backbone(x))
        return self.head(h)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.head.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


GUARD = torch.inference_mode


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["training-loop"],
    "first_nonfinite": None,
    "symptom": "exception",
    "raises": {"phase": "forward", "module": "head", "op": "", "kind": "exception", "step": 0},
}
REPAIR = [("GUARD = torch.inference_mode", "GUARD = torch.no_grad")]
