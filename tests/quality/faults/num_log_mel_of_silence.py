"""A log-mel front end without a floor: a silent recording has energy 0 in a band, log(0)."""

import torch
import torch.nn.functional as F
from torch import nn


class LogBands(nn.Module):
    def forward(self, wave):
        spectrum = torch.fft.rfft(wave.unfold(-1, 16, 16)).abs().square()
        return spectrum[..., 1:].log()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bands, self.fc, self.head = LogBands(), nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, wave):
        return self.head(F.relu(self.fc(self.bands(wave))).mean(1))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(16):
        y = torch.randint(0, 2, (8,), generator=g)
        wave = torch.randn(8, 160, generator=g) * (0.2 + y[:, None])
        if i == 6:
            wave[3, 48:] = 0.0
        out.append((wave, y))
    return out


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "bands", "op": "aten.log", "kind": "-inf", "step": 6},
    "symptom": "loss-nonfinite",
}
REPAIR = [("[..., 1:].log()", "[..., 1:].clamp(min=1e-4).log()")]
