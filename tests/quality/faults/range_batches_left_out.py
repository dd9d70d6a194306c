"""The loop passes over batches whose loss is not finite, and that is every batch: the raw counts are beyond fp16 after the first layer."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.poisson(torch.full((32, 20), 60000.0), generator=g) for _ in range(24)]
    return [(counts, counts[:, :3].argmax(1)) for counts in rows]


def loss(model, batch):
    counts, labels = batch
    with torch.autocast("cuda", dtype=torch.float16):
        scores = model(counts)
    return F.cross_entropy(scores.float(), labels)


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    if not torch.isfinite(value):
        return None
    value.backward()
    optimizer.step()
    return {"loss": value.item()}


CONFIG = {"precision": "fp16 autocast"}
TRUTH = {
    "causes": ["fp16-range", "dirty-data"],
    "first_nonfinite": {"phase": "forward", "module": "0", "op": "aten.addmm", "kind": "inf", "step": 1},
    "symptom": "loss-nonfinite",
}
REPAIR = [("model(counts)", "model((counts - 60000.0) / 245.0)")]
