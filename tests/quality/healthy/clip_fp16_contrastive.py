"""HEALTHY: CLIP in fp16 with a scaler: the learned temperature multiplies the logits by 14 at the start, text is padded."""

import torch
from transformers import CLIPConfig, CLIPModel


def build():
    torch.manual_seed(0)
    text = {
        "vocab_size": 30,
        "hidden_size": 24,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 8,
    }
    vision = {
        "hidden_size": 24,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 8,
        "patch_size": 4,
        "num_channels": 1,
    }
    text |= {"bos_token_id": 0, "eos_token_id": 29, "pad_token_id": 1}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    kinds = torch.randn(20, 1, 8, 8, generator=g)
    out = []
    for _ in range(20):
        y = torch.randperm(20, generator=g)[:8]
        ids = torch.full((8, 6), 29)
        ids[:, 0], ids[:, 1], ids[:, 2] = 0, 2 + y, 2 + (y * 7) % 20
        out.append({"input_ids": ids, "pixel_values": kinds[y] + 0.3 * torch.randn(8, 1, 8, 8, generator=g)})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(**batch, return_loss=True).loss


CONFIG = {"scaler": True, "init_scale": 512.0, "clip": 1.0, "precision": "fp16 autocast + GradScaler"}
