"""A teacher's moving average is updated with a decay of 1.5: it runs away from the student, exponentially, until the loss is inf."""

import torch
import torch.nn.functional as F
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 4))
        self.teacher = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 4)).requires_grad_(False)

    def forward(self, x):
        return self.student(x), self.teacher(x)


def build():
    torch.manual_seed(0)
    model = Pair()
    return model, torch.optim.SGD(model.student.parameters(), lr=0.01)


def batches():
    g = torch.Generator().manual_seed(1)
    return [torch.randn(32, 8, generator=g) for _ in range(120)]


def loss(model, batch):
    student, teacher = model(batch)
    return F.mse_loss(student.tanh(), teacher.tanh()) + 1e-30 * teacher.square().sum()


@torch.no_grad()
def after_step(model):
    for t, s in zip(model.teacher.parameters(), model.student.parameters(), strict=False):
        t.mul_(DECAY).add_(s, alpha=1 - DECAY)


DECAY = 2.5


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["training-loop", "model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.sum", "kind": "inf", "step": 46},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DECAY = 2.5", "DECAY = 0.99")]
