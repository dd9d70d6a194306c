"""The angle between two rotations by acos: for an identical pair the cosine is 1, the derivative of acos there is infinite."""

import torch
import torch.nn.functional as F
from torch import nn


class Angle(nn.Module):
    def forward(self, a, b):
        return torch.acos((F.normalize(a, dim=-1) * F.normalize(b, dim=-1)).sum(-1).clamp(-1, 1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.angle = nn.Linear(6, 3, bias=False), Angle()

    def forward(self, x, target):
        return self.angle(self.fc(x), target)


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.fc.weight[:, 0] = torch.tensor([1.0, 0.0, 0.0])
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 3, generator=g)
    out = [[x, x @ teacher] for x in (torch.randn(16, 6, generator=g) for _ in range(12))]
    out[0][0][4] = torch.tensor([2.0, 0, 0, 0, 0, 0])
    out[0][1][4] = torch.tensor([5.0, 0, 0])
    return out


def loss(model, batch):
    return model(*batch).mean()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "backward", "module": "angle", "op": "AcosBackward0", "kind": "inf", "step": 0},
    "symptom": "grad-nonfinite",
}
REPAIR = [(".clamp(-1, 1)", ".clamp(-0.99999, 0.99999)")]
