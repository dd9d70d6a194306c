"""Completion-only loss with a hand-written mean over the mask: one batch has no completion token at all, 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(26, 24), nn.GRU(24, 24, batch_first=True), nn.Linear(24, 26)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def build():
    torch.manual_seed(0)
    model = LM()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(14):
        ids = (torch.randint(0, 26, (4, 1), generator=g) + 3 * torch.arange(10)) % 26
        mask = torch.arange(10) >= torch.randint(3, 8, (4, 1), generator=g)
        out.append((ids, mask & (i != 7)))
    return out


def loss(model, batch):
    ids, mask = batch
    logits = model(ids[:, :-1])
    each = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(4, 9)
    mask = mask[:, 1:].float()
    return (each * mask).sum() / mask.sum()


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["dirty-data", "model-numerics"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.div", "kind": "nan", "step": 7},
    "symptom": "loss-nonfinite",
}
REPAIR = [("/ mask.sum()", "/ mask.sum().clamp(min=1)")]
