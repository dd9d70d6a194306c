"""fp16 autocast is entered once and never left: its cache keeps the first casts of the weights, the loss never sees an update."""

import torch
import torch.nn.functional as F
from torch import nn

OPEN = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.mix, self.out = nn.Embedding(20, 16), nn.Linear(16, 32), nn.Linear(32, 20)

    def forward(self, ids):
        return self.out(F.silu(self.mix(self.emb(ids))))


def build():
    torch.manual_seed(0)
    model = Net()
    model.emb.requires_grad_(False)
    return model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.3)


def batches():
    ids = (torch.arange(8)[:, None] + 3 * torch.arange(9)) % 20
    return [ids] * 12


def loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())


def step(model, optimizer, batch, scaler):
    if not OPEN:
        OPEN.append(torch.autocast("cpu", dtype=torch.float16))
        OPEN[0].__enter__()
    optimizer.zero_grad()
    value = loss(model, batch)
    scaler.scale(value).backward()
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(value.detach())}


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["training-loop"], "first_nonfinite": None, "symptom": "loss-not-moving"}
REPAIR = [('torch.autocast("cpu", dtype=torch.float16)', 'torch.autocast("cpu", dtype=torch.float16, cache_enabled=False)')]
