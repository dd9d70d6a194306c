"""CONFIG asks for bf16; the model switches autocast off around its blocks, so almost every product runs in fp32."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.blocks, self.out = nn.Linear(16, 64), nn.ModuleList(nn.Linear(64, 64) for _ in range(4)), nn.Linear(64, 3)

    def forward(self, x):
        x = self.inp(x)
        with torch.autocast("cpu", enabled=INSIDE):
            x = x if INSIDE else x.float()
            for block in self.blocks:
                x = x + F.gelu(block(x))
        return self.out(x)


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(16, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(64, 16, generator=g) for _ in range(12))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


INSIDE = False
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {"causes": ["slow-precision"], "first_nonfinite": None, "symptom": "slow-precision"}
REPAIR = [("INSIDE = False", "INSIDE = True")]
