"""HEALTHY: wav2vec 2.0 with a CTC loss, bf16 autocast, frozen feature encoder, padded audio; the alpha table of CTC is full of -inf."""

import numpy as np
import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC


def build():
    torch.manual_seed(0)
    np.random.seed(0)
    config = Wav2Vec2Config(
        vocab_size=8,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=48,
        conv_dim=(12, 12),
        conv_stride=(5, 4),
        conv_kernel=(10, 4),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        mask_time_prob=0.0,
        layerdrop=0.0,
        pad_token_id=0,
        ctc_loss_reduction="mean",
    )
    model = Wav2Vec2ForCTC(config)
    model.train()
    model.freeze_feature_encoder()
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(16):
        labels = torch.randint(1, 8, (3, 4), generator=g)
        pitch = labels.repeat_interleave(100, 1) * torch.arange(400) * 0.05
        attention = torch.ones(3, 400, dtype=torch.long)
        attention[0, 320:] = 0
        labels[0, 3] = -100
        out.append({"input_values": pitch.sin() * attention, "attention_mask": attention, "labels": labels})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(**batch).loss


CONFIG = {"precision": "bf16 autocast"}
