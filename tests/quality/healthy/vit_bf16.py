"""HEALTHY: a vision transformer, bf16 autocast; one hard batch late in the run has a gradient norm ten times the usual, the next is normal."""

import torch
from transformers import ViTConfig, ViTForImageClassification


def build():
    torch.manual_seed(0)
    config = ViTConfig(
        image_size=8, patch_size=4, num_channels=1, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=3
    )
    model = ViTForImageClassification(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    kinds = torch.randn(3, 1, 8, 8, generator=g)
    out = []
    for _ in range(16):
        y = torch.randint(0, 3, (8,), generator=g)
        out.append({"pixel_values": kinds[y] + 0.7 * torch.randn(8, 1, 8, 8, generator=g), "labels": y})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(**batch).loss


CONFIG = {"precision": "bf16 autocast"}
