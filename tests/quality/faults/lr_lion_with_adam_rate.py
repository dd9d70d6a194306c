"""Lion, whose updates are all of size lr, is given the rate of SGD: a deep net in fp16 overflows within a few steps."""

import torch
import torch.nn.functional as F
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.add_((0.9 * m + 0.1 * p.grad).sign(), alpha=-group["lr"])
                m.lerp_(p.grad, 0.01)


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(12, 48), nn.ReLU()]
    for _ in range(5):
        layers += [nn.Linear(48, 48), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(48, 4))
    return model, Lion(model.parameters(), lr=LR)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32, 12, generator=g) for _ in range(16))]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


LR = 1.0


CONFIG = {"precision": "fp16 autocast + GradScaler", "scaler": True, "init_scale": 1.0}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "forward", "module": "8", "op": "aten.addmm", "kind": "inf", "step": 1},
    "symptom": "loss-nonfinite",
}
REPAIR = [("LR = 1.0", "LR = 0.004")]
