"""HEALTHY: GPT-2 in fp32 with dropout and the eager attention's -inf/finfo.min causal mask in every layer."""

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
        attn_implementation="eager",
    )
    model = GPT2LMHeadModel(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    return model(input_ids=ids, labels=ids).loss


CONFIG = {"precision": "fp32"}
