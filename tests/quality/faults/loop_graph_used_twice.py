"""Truncated backpropagation through time without detaching the carried state: the second step walks into the first step's graph."""

import torch
import torch.nn.functional as F
from torch import nn

CARRY = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.RNNCell(3, 16), nn.Linear(16, 1)

    def forward(self, x, state):
        for t in range(x.shape[1]):
            state = self.rnn(x[:, t], state)
        return self.out(state), state


def build():
    torch.manual_seed(0)
    CARRY.clear()
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(x, x.mean((1, 2))[:, None]) for x in (torch.randn(16, 6, 3, generator=g) for _ in range(20))]


def loss(model, batch):
    out, state = model(batch[0], CARRY.get("state", torch.zeros(16, 16)))
    CARRY["state"] = state
    return F.mse_loss(out, batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["training-loop"],
    "first_nonfinite": None,
    "raises": {"phase": "backward", "module": "", "op": "", "step": 1},
    "symptom": "exception",
}
REPAIR = [('CARRY["state"] = state', 'CARRY["state"] = state.detach()')]
