"""HEALTHY: Mixtral: some experts get no token in a step, so parts of the expert weights have zero gradients; bf16 autocast."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM


def build():
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
        num_local_experts=6,
        num_experts_per_tok=1,
        output_router_logits=True,
    )
    model = MixtralForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(input_ids=ids, labels=ids).loss


CONFIG = {"precision": "bf16 autocast"}
