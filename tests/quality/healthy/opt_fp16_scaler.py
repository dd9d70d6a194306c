"""HEALTHY: OPT with learned positions (offset by 2) and ReLU units, fp16 autocast with a scaler."""

import torch
from transformers import OPTConfig, OPTForCausalLM


def build():
    torch.manual_seed(0)
    config = OPTConfig(
        vocab_size=32,
        hidden_size=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
        word_embed_proj_dim=32,
        dropout=0.0,
        pad_token_id=1,
    )
    model = OPTForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(input_ids=ids, labels=ids).loss


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
