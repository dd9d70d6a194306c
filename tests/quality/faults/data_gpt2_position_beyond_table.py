"""One text is longer than the model's table of positions: the embedding of the position raises."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def build():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=24, n_embd=24, n_layer=1, n_head=2, n_positions=12, bos_token_id=0, eos_token_id=0))
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 24, (4, 1), generator=g) + 5 * torch.arange(LONGEST if i == 5 else 10)) % 24 for i in range(14)]


def loss(model, ids):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(input_ids=ids, labels=ids).loss


LONGEST = 14
CONFIG = {"precision": "bf16 autocast"}
TRUTH = {
    "causes": ["dirty-data"],
    "first_nonfinite": None,
    "raises": {"phase": "forward", "module": "transformer.wpe", "op": "aten.embedding", "step": 5},
    "symptom": "exception",
}
REPAIR = [("LONGEST = 14", "LONGEST = 12")]
