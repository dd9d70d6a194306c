"""HEALTHY: Gemma 2 with tanh soft-capping of scores and logits, eager attention with finfo.min masks; fp16 autocast."""

import torch
from transformers import Gemma2Config, Gemma2ForCausalLM


def build():
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=4,
        attn_implementation="eager",
    )
    model = Gemma2ForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(input_ids=ids, labels=ids).loss


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
