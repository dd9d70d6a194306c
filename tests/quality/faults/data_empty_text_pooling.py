"""Attention pooling over a text without a single token: every score is masked, softmax is 0/0; fp16 autocast for a GPU."""

import torch
import torch.nn.functional as F
from torch import nn


class AttentionPool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x, visible):
        weights = self.score(x).squeeze(-1).masked_fill(~visible, float("-inf")).softmax(-1)
        return (weights.unsqueeze(-1) * x).sum(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pool, self.head = nn.Embedding(40, 16, padding_idx=0), AttentionPool(16), nn.Linear(16, 2)

    def forward(self, ids):
        return self.head(self.pool(self.emb(ids), ids != 0))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        y = torch.randint(0, 2, (8,), generator=g)
        ids = torch.randint(1, 20, (8, 10), generator=g) + 20 * y[:, None]
        ids[torch.arange(10) >= torch.randint(2, 11, (8, 1), generator=g)] = 0
        if i == 8:
            ids[5] = EMPTY
        out.append((ids, y))
    return out


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


EMPTY = 0
CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "pool", "op": "aten._softmax", "kind": "nan", "step": 8},
    "symptom": "loss-nonfinite",
}
REPAIR = [("EMPTY = 0", "EMPTY = 1")]
