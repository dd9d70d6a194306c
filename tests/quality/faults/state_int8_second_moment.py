"""An 8-bit Adam that quantises the second moment linearly by the block's maximum: small entries become 0 and their updates explode."""

import torch
import torch.nn.functional as F
from torch import nn


class Adam8(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr, "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                    state["t"] = 0
                state["t"] += 1
                state["m"].lerp_(p.grad, 0.1)
                state["v"].lerp_(p.grad.square(), 0.001)
                if QUANTISE:
                    scale = state["v"].max() / 255
                    state["v"].copy_((state["v"] / scale).round() * scale)
                m = state["m"] / (1 - 0.9 ** state["t"])
                v = state["v"] / (1 - 0.999 ** state["t"])
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, Adam8(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(10, 1, generator=g)
    spread = torch.logspace(0, -2, 10)
    return [(x * spread, x @ teacher) for x in (torch.randn(32, 10, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


QUANTISE = True


CONFIG = {"precision": "fp32, 8-bit moments"}
TRUTH = {"causes": ["low-precision-state", "learning-rate", "model-numerics"], "first_nonfinite": None, "symptom": "loss rises"}
REPAIR = [("QUANTISE = True", "QUANTISE = False")]
