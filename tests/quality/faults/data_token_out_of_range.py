"""One text was encoded with another tokenizer: an id of 77 in a vocabulary of 64, the embedding raises."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.body = nn.Embedding(64, 24), nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, ids):
        return self.head(self.body(self.tokens(ids)).mean(1))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        y = torch.randint(0, 2, (8,), generator=g)
        out.append((torch.randint(0, 32, (8, 12), generator=g) + 32 * y[:, None], y))
    out[4][0][6, 10] = 77
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch[0])
    return F.cross_entropy(logits.float(), batch[1])


CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": None,
    "raises": {"phase": "forward", "module": "tokens", "op": "aten.embedding", "step": 4},
    "symptom": "exception",
}
REPAIR = [("= 77", "= 7")]
