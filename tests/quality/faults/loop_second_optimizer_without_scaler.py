"""Two optimizers, one GradScaler: the second one steps by itself, on gradients that still carry the loss scale."""

import torch
import torch.nn.functional as F
from torch import nn


class TwoParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(12, 24), nn.Linear(24, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def build():
    torch.manual_seed(0)
    model = TwoParts()
    model.head_optimizer = torch.optim.SGD(model.head.parameters(), lr=1e-2)
    model.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**14)
    return model, torch.optim.AdamW(model.body.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(8, 12, generator=g) for _ in range(10)]
    return [(x, x[:, :4].argmax(1)) for x in rows]


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        scores = model(batch[0])
    return F.cross_entropy(scores.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    model.head_optimizer.zero_grad()
    value = loss(model, batch)
    model.scaler.scale(value).backward()
    model.scaler.step(optimizer)
    model.head_optimizer.step()
    model.scaler.update()
    return {"loss": value.item()}


CONFIG = {"precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["training-loop"],
    "first_nonfinite": {"phase": "backward", "module": "body", "op": "AddmmBackward0", "kind": "inf", "step": 1},
    "symptom": "grad-nonfinite",
}
REPAIR = [("model.head_optimizer.step()", "model.scaler.step(model.head_optimizer)")]
