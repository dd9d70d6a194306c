"""softplus written as log(1 + exp(x)): a confident discriminator sends x above 88.7 and the loss becomes infinite."""

import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score = nn.Linear(6, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.score(torch.relu(self.body(x))).squeeze(-1)


def build():
    torch.manual_seed(0)
    model = Critic()
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        real = 1.0 + 0.5 * torch.randn(16, 6, generator=g)
        fake = -1.0 + 0.5 * torch.randn(16, 6, generator=g)
        if i >= 10:
            real = real * 600
        out.append((real, fake))
    return out


def softplus(x):
    return torch.log(1 + torch.exp(x))


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        real, fake = model(batch[0]), model(batch[1])
    return softplus(-fake.float() * -1).mean() + (softplus(real.float()) - real.float()).mean()


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.exp", "kind": "inf", "step": 10},
    "symptom": "loss-nonfinite",
}
REPAIR = [("return torch.log(1 + torch.exp(x))", "return torch.nn.functional.softplus(x)")]
