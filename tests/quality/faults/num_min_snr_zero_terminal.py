"""Min-SNR weights of an epsilon-prediction loss with a zero-terminal-SNR schedule: min(snr, 5) / snr is 0/0 at the last timestep."""

import torch
import torch.nn.functional as F
from torch import nn

T = 50
ALPHA_BAR = torch.cos(torch.linspace(0, 1, T) * torch.pi / 2) ** 2
ALPHA_BAR = (ALPHA_BAR - ALPHA_BAR[-1]) / (ALPHA_BAR[0] - ALPHA_BAR[-1]) * 0.999


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.one, self.two = nn.Embedding(T, 16), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x, t):
        return self.two(F.silu(self.one(x) + self.time(t)))


def build():
    torch.manual_seed(0)
    model = Denoiser()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(24):
        t = torch.randint(0, T - 1, (16,), generator=g)
        if i == 6:
            t[11] = T - 1
        out.append((torch.randn(16, 8, generator=g) * 0.2 + 1, torch.randn(16, 8, generator=g), t))
    return out


def loss(model, batch):
    x, noise, t = batch
    a = ALPHA_BAR[t][:, None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        guess = model(a.sqrt() * x + (1 - a).sqrt() * noise, t)
    snr = ALPHA_BAR[t] / (1 - ALPHA_BAR[t])
    weight = snr.clamp(max=5.0) / snr
    return (weight * (guess.float() - noise).square().mean(-1)).mean()


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.div", "kind": "nan", "step": 6},
    "symptom": "loss-nonfinite",
}
REPAIR = [("snr.clamp(max=5.0) / snr", "snr.clamp(max=5.0) / snr.clamp(min=1e-4)")]
