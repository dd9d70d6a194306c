"""HEALTHY: BART in fp32 with label smoothing, dropout and LayerDrop: with smoothing the loss has a floor well above 0."""

import torch
import torch.nn.functional as F
from transformers import BartConfig, BartForConditionalGeneration


def build():
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=30,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=16,
        dropout=0.1,
    )
    model = BartForConditionalGeneration(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [4 + (torch.randint(0, 26, (6, 1), generator=g) + 3 * torch.arange(7)) % 26 for _ in range(20)]


def loss(model, ids):
    logits = model(input_ids=ids, decoder_input_ids=ids.roll(1, 1)).logits
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten(), label_smoothing=0.2)


CONFIG = {"precision": "fp32"}
