"""HEALTHY: Llama in bf16 autocast, left padding: pad queries see no key at all, their labels are -100."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def build():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=16, pad_token_id=0
    )
    model = LlamaForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        ids = 3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29
        visible = torch.arange(10) >= torch.randint(0, 6, (4, 1), generator=g)
        out.append({"input_ids": ids.where(visible, 0), "attention_mask": visible.long(), "labels": ids.where(visible, -100)})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(**batch).loss


CONFIG = {"clip": 1.0, "precision": "bf16 autocast"}
