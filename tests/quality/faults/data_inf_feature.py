"""A division by zero in a preprocessing job left one infinite feature in one row of one batch; bf16 autocast, batches are dicts."""

import torch
import torch.nn.functional as F
from torch import nn


class Tabular(nn.Module):
    def __init__(self):
        super().__init__()
        self.category, self.numeric, self.head = nn.Embedding(6, 8), nn.Linear(7, 24), nn.Linear(32, 1)

    def forward(self, numeric, category):
        return self.head(torch.cat([F.relu(self.numeric(numeric)), self.category(category)], -1)).squeeze(-1)


def build():
    torch.manual_seed(0)
    model = Tabular()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(12):
        numeric, category = torch.randn(24, 7, generator=g), torch.randint(0, 6, (24,), generator=g)
        label = ((numeric[:, 0] + category - 2.5) > 0).float()
        if i == 6:
            numeric[17, 2] = float("inf")
        out.append({"numeric": numeric, "category": category, "label": label})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch["numeric"], batch["category"])
    return F.binary_cross_entropy_with_logits(logits.float(), batch["label"])


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": {"phase": "input", "module": "batch", "op": "input", "kind": "inf", "step": 6},
    "symptom": "loss-nonfinite",
}
REPAIR = [('float("inf")', "0.5")]
