"""A checkpoint passed through fp16 on its way: a running variance of 180,000 is now infinite; training goes on, evaluation is ruined."""

import torch
import torch.nn.functional as F
from torch import nn


def net():
    return nn.Sequential(nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14, 2))


def build():
    torch.manual_seed(0)
    source = net()
    source[1].running_var.fill_(1.8e5)
    saved = {name: t.to(SAVED) if t.is_floating_point() else t for name, t in source.state_dict().items()}
    model = net()
    model.load_state_dict(saved)
    return model, torch.optim.SGD(model.parameters(), lr=0.02)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(14):
        y = torch.randint(0, 2, (16,), generator=g)
        out.append((700 * (torch.randn(16, 3, 16, generator=g) + 0.4 * y[:, None, None]), y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


SAVED = torch.float16
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["checkpoint", "initialisation"],
    "first_nonfinite": {"phase": "buffer", "module": "1.running_var", "op": "parameter/buffer", "kind": "inf", "step": 0},
    "symptom": "buffers-nonfinite",
}
REPAIR = [("SAVED = torch.float16", "SAVED = torch.float32")]
