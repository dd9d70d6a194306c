"""HEALTHY: PPO: the clipped surrogate is 0 at first (ratio 1, normalised advantages), then small and of either sign; bf16 autocast."""

import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(6, 32), nn.Linear(32, 4), nn.Linear(32, 1)

    def forward(self, state):
        hidden = torch.tanh(self.body(state))
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def build():
    torch.manual_seed(0)
    model = Agent()
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(6, 4, generator=g)
    out = []
    for _ in range(24):
        state, action = torch.randn(64, 6, generator=g), torch.randint(0, 4, (64,), generator=g)
        reward = (state @ teacher).gather(1, action[:, None]).squeeze(1)
        out.append((state, action, torch.full((64,), -1.386), (reward - reward.mean()) / reward.std(), reward))
    return out


def loss(model, batch):
    state, action, old, advantage, ret = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, value = model(state)
    log_p = logits.float().log_softmax(-1)
    ratio = (log_p.gather(1, action[:, None]).squeeze(1) - old).exp()
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    return -surrogate + 0.01 * (value.float() - ret).square().mean() - 0.01 * entropy


CONFIG = {"clip": 0.5, "precision": "bf16 autocast"}
