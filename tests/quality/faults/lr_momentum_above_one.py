"""SGD with a momentum of 1.2, a typing mistake: the velocity grows by a fifth at each step whatever the gradient says."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=1.2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 2, generator=g)
    return [(x, x @ teacher) for x in (torch.randn(32, 10, generator=g) for _ in range(24))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch[0])
    return F.mse_loss(out.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": None,
    "symptom": "loss climbs",
}
REPAIR = [("momentum=1.2", "momentum=0.5")]
