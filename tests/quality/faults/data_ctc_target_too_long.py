"""One utterance was cut, its transcript was not: more letters than frames, the CTC loss is infinite."""

import torch
import torch.nn.functional as F
from torch import nn


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv1d(6, 24, 3, padding=1), nn.Linear(24, 7)

    def forward(self, x):
        return self.out(F.gelu(self.conv(x)).transpose(1, 2)).log_softmax(-1)


def build():
    torch.manual_seed(0)
    model = Acoustic()
    return model, torch.optim.Adam(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    voices = torch.randn(7, 6, generator=g)
    out = []
    for i in range(14):
        text = torch.randint(1, 7, (4, 5), generator=g)
        frames = voices[text.repeat_interleave(4, 1)].transpose(1, 2) + 0.2 * torch.randn(4, 6, 20, generator=g)
        lengths = torch.full((4,), 20)
        if i == 5:
            lengths[2] = 3
        out.append((frames, text, lengths))
    return out


def loss(model, batch):
    frames, text, lengths = batch
    return F.ctc_loss(model(frames).transpose(0, 1), text, lengths, torch.full((4,), 5))


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten._ctc_loss", "kind": "inf", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("lengths[2] = 3", "lengths[2] = 19")]
