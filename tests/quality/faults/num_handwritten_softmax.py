"""A softmax without the maximum subtracted: exp of a logit above 88.7 is infinite in fp32 and bf16, inf/inf."""

import torch
from torch import nn


class Softmax(nn.Module):
    def forward(self, x):
        e = torch.exp(x)
        return e / e.sum(-1, keepdim=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.softmax = nn.Linear(8, 4), Softmax()
        self.gain = GAIN

    def forward(self, x):
        return self.softmax(self.gain * self.fc(x))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=3e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(8, 4, generator=g)
    out = []
    for i in range(14):
        x = torch.randn(16, 8, generator=g)
        y = (x @ teacher).argmax(1)
        if i == 4:
            x = x * 60
        out.append((x, y))
    return out


def loss(model, batch):
    p = model(batch[0]).gather(1, batch[1][:, None])
    return -(p + 1e-6).log().mean()


GAIN = 2.0
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "softmax", "op": "aten.exp", "kind": "inf", "step": 4},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.exp(x)", "torch.exp(x - x.amax(-1, keepdim=True))")]
