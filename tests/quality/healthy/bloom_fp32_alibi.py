"""HEALTHY: BLOOM: ALiBi biases grow with distance and masks are finfo.min; fp32."""

import torch
from transformers import BloomConfig, BloomForCausalLM


def build():
    torch.manual_seed(0)
    config = BloomConfig(
        vocab_size=32,
        hidden_size=32,
        n_layer=2,
        n_head=2,
        hidden_dropout=0.1,
    )
    model = BloomForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    return model(input_ids=ids, labels=ids).loss


CONFIG = {"precision": "fp32"}
