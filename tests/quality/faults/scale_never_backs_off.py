"""A hand-written scaler skips steps that overflow but never lowers its scale: not one step is taken."""

import torch
import torch.nn.functional as F
from torch import nn

SCALE = [2.0**24]
BACKOFF = 1.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.mix, self.out = nn.Embedding(30, 16), nn.Linear(16, 32), nn.Linear(32, 30)

    def forward(self, ids):
        return self.out(F.gelu(self.mix(self.emb(ids))))


def build():
    torch.manual_seed(0)
    SCALE[0] = 2.0**24
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    starts = [torch.randint(0, 30, (4, 1), generator=g) for _ in range(20)]
    return [(s + 7 * torch.arange(9)) % 30 for s in starts]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    (value * SCALE[0]).backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    if torch.isfinite(norm):
        for p in model.parameters():
            p.grad /= SCALE[0]
        optimizer.step()
    else:
        SCALE[0] *= BACKOFF
    return {"loss": float(value.detach()), "grad_norm": float(norm) / SCALE[0]}


CONFIG = {"precision": "fp16 autocast, own loss scaling"}
TRUTH = {
    "causes": ["loss-scaling"],
    "first_nonfinite": {"phase": "backward", "module": "", "op": "ToCopyBackward0", "kind": "-inf", "step": 0},
    "symptom": "weights-not-moving",
}
REPAIR = [("BACKOFF = 1.0", "BACKOFF = 0.25")]
