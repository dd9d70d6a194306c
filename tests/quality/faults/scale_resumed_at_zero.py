"""The scaler's state was saved with a scale of 0.0: on resume the gradients are zero times infinity, and the first step destroys the weights."""

import torch
import torch.nn.functional as F
from torch import nn

SAVED = {"scale": 0.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0}
OWN = []


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 3))
    scaler = torch.amp.GradScaler("cpu")
    scaler.load_state_dict(SAVED)
    OWN[:] = [scaler]
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 10, generator=g) for _ in range(10))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


def step(model, optimizer, batch, scaler):
    scaler = OWN[0]
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


CONFIG = {"precision": "fp16 autocast, GradScaler restored from a checkpoint"}
TRUTH = {
    "causes": ["loss-scaling", "checkpoint"],
    "first_nonfinite": {"phase": "unscale", "module": "0.weight", "op": "GradScaler.unscale_", "kind": "nan", "step": 0},
    "symptom": "weights-nonfinite",
}
REPAIR = [('"scale": 0.0', '"scale": 1024.0')]
