"""A BERT whose second layer was pretrained in bf16 with large weights: its output projection passes 65504 under fp16 autocast."""

import torch
from transformers import BertConfig, BertForSequenceClassification


def build():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64, max_position_embeddings=16, num_labels=2
    )
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        model.bert.encoder.layer[1].intermediate.dense.weight.mul_(3000)
        model.bert.encoder.layer[1].output.dense.weight.mul_(3000)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(12):
        y = torch.randint(0, 2, (8,), generator=g)
        out.append({"input_ids": torch.randint(0, 20, (8, 10), generator=g) + 20 * y[:, None], "labels": y})
    return out


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        return model(**batch).loss


CONFIG = {"scaler": True, "precision": "fp16 autocast + GradScaler"}
TRUTH = {
    "causes": ["fp16-range"],
    "first_nonfinite": {"phase": "forward", "module": "bert.encoder.layer.1.output.dense", "op": "aten.addmm", "kind": "inf", "step": 0},
    "symptom": "loss-nonfinite",
}
REPAIR = [("torch.float16", "torch.bfloat16")]
