"""HEALTHY: T5 in bf16 autocast: unscaled attention, log(0) = -inf in its position buckets, finfo.min masks, padding in both sequences."""

import torch
from transformers import T5Config, T5ForConditionalGeneration


def build():
    torch.manual_seed(0)
    config = T5Config(vocab_size=32, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, dropout_rate=0.0, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        ids = torch.randint(2, 17, (6, 8), generator=g)
        visible = torch.arange(8) < torch.randint(4, 9, (6, 1), generator=g)
        out.append({"input_ids": ids * visible, "attention_mask": visible.long(), "labels": (ids + 15).where(visible, -100)})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(**batch).loss


CONFIG = {"precision": "bf16 autocast"}
