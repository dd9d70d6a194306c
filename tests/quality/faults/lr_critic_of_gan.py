"""Two optimizers: the critic's rate is a typo (5 instead of 5e-3) and its scores grow without bound."""

import torch
from torch import nn

CRITIC = []


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))
        self.critic = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))


def build():
    torch.manual_seed(0)
    model = Pair()
    CRITIC[:] = [torch.optim.SGD(model.critic.parameters(), lr=CRITIC_LR)]
    return model, torch.optim.SGD(model.generator.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randn(16, 2, generator=g) * 0.3 + 1, torch.randn(16, 3, generator=g)) for _ in range(24)]


def loss(model, batch):
    return (model.critic(model.generator(batch[1])) - 1).square().mean()


def step(model, optimizer, batch, scaler):
    real, noise = batch
    critic = CRITIC[0]
    critic.zero_grad()
    fake = model.generator(noise).detach()
    (model.critic(fake).square().mean() + (model.critic(real) - 1).square().mean()).backward()
    critic.step()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    optimizer.step()
    return {"loss": float(value.detach())}


CRITIC_LR = 5.0


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["learning-rate"],
    "first_nonfinite": {"phase": "forward", "module": "critic.2", "op": "aten.addmm", "kind": "inf", "step": 2},
    "symptom": "loss-nonfinite",
}
REPAIR = [("CRITIC_LR = 5.0", "CRITIC_LR = 5e-3")]
