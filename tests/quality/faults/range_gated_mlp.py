"""Gate and up projection are each below 65504; their product in the gated MLP is not."""

import torch
import torch.nn.functional as F
from torch import nn


class GatedMLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.mlp, self.norm, self.head = nn.Linear(6, 24), GatedMLP(24), nn.LayerNorm(24), nn.Linear(24, 3)

    def forward(self, x):
        x = self.inp(x)
        return self.head(self.norm(x + self.mlp(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.mlp.gate.weight.mul_(1500)
        model.mlp.up.weight.mul_(1500)
        model.mlp.down.weight.mul_(1e-5)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 3, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 6, generator=g) for _ in range(12))]


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"scaler": True, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "mlp", "op": "aten.mul", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.float16", "torch.bfloat16")]
