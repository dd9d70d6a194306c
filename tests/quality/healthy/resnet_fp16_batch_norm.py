"""HEALTHY: a small ResNet with batch normalisation in fp16; the running statistics start at 0 and 1 and move every step."""

import torch
from transformers import ResNetConfig, ResNetForImageClassification


def build():
    torch.manual_seed(0)
    config = ResNetConfig(num_channels=1, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3)
    model = ResNetForImageClassification(config)
    model.train()
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def batches():
    g = torch.Generator().manual_seed(1)
    kinds = torch.randn(3, 1, 16, 16, generator=g)
    out = []
    for _ in range(14):
        y = torch.randint(0, 3, (8,), generator=g)
        out.append({"pixel_values": kinds[y] + 0.8 * torch.randn(8, 1, 16, 16, generator=g), "labels": y})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(**batch).loss


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
