"""HEALTHY: BERT masked-language modelling in fp16: 85 % of the labels are -100, padding is masked with finfo.min, the pooler is never trained."""

import torch
from transformers import BertConfig, BertForMaskedLM


def build():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        attn_implementation="eager",
    )
    model = BertForMaskedLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(20):
        ids = (4 + torch.randint(0, 36, (8, 1), generator=g)).expand(8, 12)
        chosen = torch.rand(8, 12, generator=g) < 0.15
        chosen[0, 1] = True
        visible = torch.arange(12) < torch.randint(6, 13, (8, 1), generator=g)
        labels = ids.where(chosen & visible, -100)
        out.append({"input_ids": ids.masked_fill(chosen, 3) * visible, "attention_mask": visible.long(), "labels": labels})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(**batch).loss


CONFIG = {"scaler": True, "init_scale": 256.0, "precision": "fp16 autocast + GradScaler"}
