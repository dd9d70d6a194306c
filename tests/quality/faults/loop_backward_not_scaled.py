"""backward() runs on the plain loss, the scaler still divides by 65536 before the step: the updates are 65536 times too small."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.SGD(model.parameters(), lr=0.3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(16, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(48, 16, generator=g) for _ in range(20))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value)
    value.backward()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


CONFIG = {"scaler": True, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["training-loop", "loss-scaling"], "first_nonfinite": None, "symptom": "updates far too small"}
REPAIR = [("    scaler.scale(value)\n    value.backward()", "    scaler.scale(value).backward()")]
