"""HEALTHY: Mamba: a scan with exp of large negative numbers (they underflow to 0, as they should); fp32."""

import torch
from transformers import MambaConfig, MambaForCausalLM


def build():
    torch.manual_seed(0)
    config = MambaConfig(
        vocab_size=32,
        hidden_size=16,
        state_size=4,
        num_hidden_layers=2,
        conv_kernel=3,
        expand=2,
    )
    model = MambaForCausalLM(config)
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [3 + (torch.randint(0, 29, (4, 1), generator=g) + 5 * torch.arange(10)) % 29 for _ in range(16)]


def loss(model, ids):
    return model(input_ids=ids, labels=ids).loss


CONFIG = {"precision": "fp32"}
