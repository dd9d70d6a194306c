"""Illegal actions are masked with -inf, but the recorded action of one row is an illegal one: its log probability is -inf."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.logits = nn.Linear(6, 24), nn.Linear(24, 5)

    def forward(self, state, legal):
        return self.logits(torch.tanh(self.body(state))).masked_fill(~legal, float("-inf")).log_softmax(-1)


def build():
    torch.manual_seed(0)
    model = Policy()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 5, generator=g)
    out = []
    for i in range(16):
        state = torch.randn(24, 6, generator=g)
        action = (state @ teacher).argmax(1)
        legal = torch.rand(24, 5, generator=g) < 0.7
        legal[torch.arange(24), action] = True
        if i == 7:
            legal[13, action[13]] = LEGAL
            legal[13, (action[13] + 1) % 5] = True
        out.append((state, legal, action))
    return out


def loss(model, batch):
    state, legal, action = batch
    return -model(state, legal).gather(1, action[:, None]).mean()


LEGAL = False
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "", "op": "aten.masked_fill", "kind": "-inf", "step": 7},
    # the mask is meant; it becomes a fault where gather picks it
    "also": [
        {"phase": "forward", "module": "", "op": "aten._log_softmax", "kind": "-inf", "step": 7},
        {"phase": "loss", "module": "", "op": "aten.gather", "kind": "-inf", "step": 7},
    ],
    "symptom": "loss-nonfinite",
}
REPAIR = [("LEGAL = False", "LEGAL = True")]
