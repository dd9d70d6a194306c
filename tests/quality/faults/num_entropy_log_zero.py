"""An entropy bonus p * log(p) on a policy that became certain: p is exactly 0, 0 * -inf."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))
    return model, torch.optim.Adam(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(5, 4, generator=g)
    out = []
    for i in range(14):
        state = torch.randn(16, 5, generator=g)
        forbidden = torch.zeros(16, 4)
        if i == 6:
            forbidden[3, 1] = -200.0
        out.append((state, (state @ teacher).argmax(1), forbidden))
    return out


def loss(model, batch):
    state, action, forbidden = batch
    p = (model(state) + forbidden).softmax(-1)
    entropy = -(p * p.log()).sum(-1)
    chosen = p.gather(1, action[:, None]).squeeze(1)
    return (F.softplus(2 - 3 * chosen) - 0.01 * entropy).mean()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.log", "kind": "-inf", "step": 6},
    "symptom": "loss-nonfinite",
}
REPAIR = [("p.log()", "p.clamp(min=1e-9).log()")]
