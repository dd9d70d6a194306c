"""HEALTHY: GPT-2, fp16 autocast with a scaler; causal mask through sdpa; tied embeddings."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def build():
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=32,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=16,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(input_ids=ids, labels=ids).loss


CONFIG = {"clip": 1.0, "scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
