"""HEALTHY: GPT-NeoX with rotary positions on a quarter of the width and parallel residuals; bf16 autocast."""

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM


def build():
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
    model = GPTNeoXForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(input_ids=ids, labels=ids).loss


CONFIG = {"precision": "bf16 autocast"}
