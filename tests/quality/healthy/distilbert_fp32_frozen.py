"""HEALTHY: DistilBERT with everything but the classifier frozen: most parameters have no gradient and never move."""

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification


def build():
    torch.manual_seed(0)
    model = DistilBertForSequenceClassification(
        DistilBertConfig(vocab_size=40, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=16, num_labels=2)
    )
    model.train()
    model.distilbert.requires_grad_(False)
    return model, torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(20):
        y = torch.randint(0, 2, (16,), generator=g)
        out.append({"input_ids": torch.randint(0, 20, (16, 8), generator=g) + 20 * y[:, None], "labels": y})
    return out


def loss(model, batch):
    return model(**batch).loss


CONFIG = {"precision": "fp32"}
