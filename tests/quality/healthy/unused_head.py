"""HEALTHY: a multi-task model trains one of its two heads in this stage: the other one is in the optimizer, is never called, has no gradient."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.GELU())
        self.classify, self.regress = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x, task):
        return self.classify(self.body(x)) if task == "classify" else self.regress(self.body(x))


def build():
    torch.manual_seed(0)
    model = MultiTask()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 3, generator=g)
    return [{"x": x, "y": (x @ teacher).argmax(1), "task": "classify"} for x in (torch.randn(32, 8, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.cross_entropy(model(batch["x"], batch["task"]), batch["y"])


CONFIG = {"precision": "fp32"}
