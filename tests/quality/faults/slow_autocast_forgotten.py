"""CONFIG asks for fp16 autocast, the loss function never enters it: everything runs in fp32."""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn

PRECISION = "fp16"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.layer, self.head = (
            nn.Embedding(30, 32),
            nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True),
            nn.Linear(32, 30),
        )

    def forward(self, ids):
        return self.head(self.layer(self.emb(ids)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 30, (6, 1), generator=g) + 7 * torch.arange(9)) % 30 for _ in range(12)]


def loss(model, ids):
    context = torch.autocast("cpu", dtype=torch.float16) if PRECISION == "float16" else contextlib.nullcontext()
    with context:
        logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
TRUTH = {"causes": ["slow-precision"], "first_nonfinite": None, "symptom": "slow-precision"}
REPAIR = [('PRECISION = "fp16"', 'PRECISION = "float16"')]
