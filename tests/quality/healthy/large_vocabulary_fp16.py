"""HEALTHY: a language model whose tied vocabulary is mostly unused: the gradients of those words are below fp16's least number."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

VOCABULARY, USED, WIDTH = 8192, 200, 32


class TiedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))
        nn.init.normal_(self.words.weight, std=0.02)
        with torch.no_grad():
            self.bias[USED:] = -24.0  # as some thousand steps leave words that never come

    def forward(self, ids):
        hidden = self.norm(torch.tanh(self.mix(self.words(ids))))
        return nn.functional.linear(hidden, self.words.weight, self.bias)


def build():
    torch.manual_seed(0)
    model = TiedModel()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    generator = torch.Generator().manual_seed(1)
    starts = torch.randint(0, USED, (12, 8, 1), generator=generator)
    return [(start + torch.arange(17)) % USED for start in starts]


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(batch[:, :-1])
    return cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


CONFIG = {"scaler": True, "init_scale": 65536.0, "precision": "fp16 autocast + GradScaler"}
