"""Dice loss without an eps: for an image with no object and a prediction that underflows to 0 the ratio is 0/0."""

import torch
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid(), nn.Threshold(0.02, 0.0))
    return model, torch.optim.Adam(model.parameters(), lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for i in range(12):
        image = torch.rand(4, 1, 12, 12, generator=g)
        mask = (nn.functional.avg_pool2d(image, 3, 1, 1) > 0.5).float()
        if i == 5:
            image[2], mask[2] = -60.0 * torch.sign(SEEN), 0.0
        out.append((image, mask))
    return out


def loss(model, batch):
    p, y = model(batch[0]), batch[1]
    p = p * (batch[0] > -1)
    return (1 - 2 * (p * y).sum((1, 2, 3)) / (p.sum((1, 2, 3)) + y.sum((1, 2, 3)))).mean()


SEEN = torch.ones(1, 12, 12)
CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["model-numerics", "dirty-data"],
    "first_nonfinite": {"phase": "loss", "module": "", "op": "aten.div", "kind": "nan", "step": 5},
    "symptom": "loss-nonfinite",
}
REPAIR = [("+ y.sum((1, 2, 3)))).mean()", "+ y.sum((1, 2, 3)) + 1.0)).mean()")]
