"""HEALTHY: Whisper in fp16 with a scaler: sinusoidal encoder positions without gradient, a causal decoder, -100 in the labels."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration


def build():
    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=24,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=6,
        max_source_positions=12,
        max_target_positions=12,
        decoder_start_token_id=1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = WhisperForConditionalGeneration(config)
    model.train()
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    voices = torch.randn(21, 6, generator=g)
    out = []
    for _ in range(20):
        labels = 3 + (torch.randint(0, 21, (4, 1), generator=g) + 2 * torch.arange(6)) % 21
        features = voices[labels - 3].repeat_interleave(4, 1).transpose(1, 2) + 0.1 * torch.randn(4, 6, 24, generator=g)
        labels[0, 4:] = -100
        out.append({"input_features": features, "labels": labels})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(**batch).loss


CONFIG = {"scaler": True, "init_scale": 1024.0, "clip": 1.0, "precision": "fp16 autocast + GradScaler"}
