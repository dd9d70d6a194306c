"""The loss divides by the number of tokens, summed up in fp16: 70,000 tokens are inf, the loss is 0 and so are all gradients."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [torch.randint(0, 30, (70, 1001), generator=g) for _ in range(6)]


def loss(model, batch):
    each = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), ((batch[:, :-1] + 1) % 30).flatten(), reduction="none")
    mask = torch.ones_like(each, dtype=MASK)
    return (each * mask).float().sum() / mask.sum().float()


MASK = torch.float16


CONFIG = {"precision": "fp32, mask in fp16"}
TRUTH = {
    "causes": ["fp16-range", "model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.sum", "kind": "inf", "step": 0},
    "symptom": "grad-norm-collapse",
}
REPAIR = [("MASK = torch.float16", "MASK = torch.float32")]
