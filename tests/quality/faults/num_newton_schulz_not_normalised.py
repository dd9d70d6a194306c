"""A Muon-like optimizer orthogonalises the gradient without dividing by its norm first: Newton-Schulz diverges for large gradients."""

import torch
import torch.nn.functional as F
from torch import nn


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                update = p.grad
                if p.ndim == 2:
                    update = update / update.norm() if NORMALISE else update
                    for _ in range(5):
                        a = update @ update.T
                        update = 3.4445 * update + (-4.775 * a + 2.0315 * a @ a) @ update
                p.add_(update, alpha=-group["lr"])


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    return model, Muon(model.parameters(), lr=0.01)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 1, generator=g)
    return [(x, 8 * x @ teacher) for x in (torch.randn(32, 8, generator=g) for _ in range(20))]


def loss(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


NORMALISE = False


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "learning-rate"],
    "first_nonfinite": {"phase": "optimizer", "module": "", "op": "", "kind": "inf", "step": 0},
    "symptom": "weights-nonfinite",
}
REPAIR = [("NORMALISE = False", "NORMALISE = True")]
