"""Embeddings are multiplied by a large learned gain, as some model families do: legal in bf16, infinite in half."""

import torch
import torch.nn.functional as F
from torch import nn


class ScaledEmbedding(nn.Embedding):
    def __init__(self, words, width):
        super().__init__(words, width)
        self.gain = nn.Parameter(torch.tensor(5.0e4))

    def forward(self, ids):
        return super().forward(ids) * self.gain


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.norm, self.up, self.head = ScaledEmbedding(20, 16), nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 20)

    def forward(self, ids):
        return self.head(F.silu(self.up(self.norm(self.emb(ids)))))


def build():
    torch.manual_seed(0)
    model = Net()
    return model.to(DTYPE), torch.optim.SGD([*model.up.parameters(), *model.head.parameters()], lr=0.5)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 20, (6, 1), generator=g) + 3 * torch.arange(9)) % 20 for _ in range(16)]


def loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())


DTYPE = torch.float16
CONFIG = {"precision": "pure fp16 weights"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "emb", "op": "aten.mul", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("DTYPE = torch.float16", "DTYPE = torch.bfloat16")]
