"""A minibatch-deviation feature takes the unbiased standard deviation over the batch; the last batch has one row: 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


class BatchDeviation(nn.Module):
    def forward(self, x):
        return torch.cat([x, x.std(0).mean().expand(len(x), 1)], 1)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 15), nn.ReLU(), BatchDeviation(), nn.Linear(16, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    x = torch.randn(12 * 11 + LEFT_OVER, 6, generator=g)
    return [(part, (part.sum(1) > 0).long()) for part in x.split(12)]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


LEFT_OVER = 1
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "2", "op": "aten.std", "kind": "nan", "step": 11},
    "symptom": "loss-nonfinite",
}
REPAIR = [("LEFT_OVER = 1", "LEFT_OVER = 6")]
