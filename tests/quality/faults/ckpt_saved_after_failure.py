"""The checkpoint was written after the run had failed: one layer of it is NaN."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.block, self.head = nn.Embedding(12, 16), nn.Linear(16, 16), nn.Linear(16, 12)

    def forward(self, ids):
        x = self.emb(ids)
        return self.head(x + F.gelu(self.block(x)))


def build():
    torch.manual_seed(0)
    state = {name: value.clone() for name, value in Net().state_dict().items()}
    state["block.weight"][3] *= BROKEN
    model = Net()
    model.load_state_dict(state)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 12, (6, 1), generator=g) + 5 * torch.arange(8)) % 12 for _ in range(12)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


BROKEN = float("nan")
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["checkpoint", "initialisation"],
    "first_nonfinite": {"phase": "parameter", "module": "block.weight", "op": "parameter/buffer", "kind": "nan", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [('BROKEN = float("nan")', "BROKEN = 1.0")]
