"""HEALTHY: Phi: partial rotary positions, parallel attention and MLP, a bias on the head; fp32 with gradient clipping at every step."""

import torch
from transformers import PhiConfig, PhiForCausalLM


def build():
    torch.manual_seed(0)
    config = PhiConfig(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
    model = PhiForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    return model(input_ids=ids, labels=ids).loss


CONFIG = {"clip": 0.3, "precision": "fp32"}
