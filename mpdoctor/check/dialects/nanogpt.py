"""nanoGPT's `config/*.py`, and `train.py` itself, whose globals they override. Defaults: nanoGPT of 2025.

`dtype` is bfloat16 where torch says that the GPU has it, else float16 with a GradScaler; gradients are unscaled before they are clipped.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "nanoGPT of 2025"
MARKS = (
    "out_dir", "eval_interval", "eval_iters", "log_interval", "always_save_checkpoint", "init_from", "wandb_log", "wandb_project", "wandb_run_name",
    "gradient_accumulation_steps", "batch_size", "block_size", "n_layer", "n_head", "n_embd", "max_iters", "lr_decay_iters", "min_lr",
    "warmup_iters", "decay_lr", "grad_clip",
)  # fmt: skip


OWN = ("always_save_checkpoint", "init_from", "n_embd", "block_size", "wandb_run_name")
"""Globals that programs made after it do not have."""


def claim(document: Document) -> float:
    """Six of its globals, two of them its own."""
    found, own = count(document, MARKS), count(document, OWN)
    return 60 + found if document.syntax == "python" and not document.constructor and found >= 6 and own >= 2 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The globals."""
    start = reader.text("init_from", default="scratch", note=VERSION)
    decays = reader.flag("decay_lr", default=True, note=VERSION)
    scratch = start.value == "scratch"
    method = start.becomes("pretrain" if scratch else "full_ft") if start.known and start.value != "resume" else UNKNOWN
    return TrainingConfig(
        dialect="nanogpt",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.constant("AdamW", VERSION, key="optimizer")),
            clipping(reader.number("grad_clip", default=1.0, note=VERSION)),
        ),
        lr=reader.number("learning_rate", default=6e-4, note=VERSION),
        beta1=reader.number("beta1", default=0.9, note=VERSION),
        beta2=reader.number("beta2", default=0.95, note=VERSION),
        eps=reader.constant(1e-8, "torch.optim.AdamW"),
        weight_decay=reader.number("weight_decay", default=0.1, note=VERSION),
        warmup_steps=reader.number("warmup_iters", default=2000.0, note=VERSION) if decays.value else decays.becomes(0.0, "no warm-up without decay"),
        total_steps=reader.integer("max_iters", default=600_000, note=VERSION),
        micro_batch=reader.integer("batch_size", default=12, note=VERSION),
        accumulation_steps=reader.integer("gradient_accumulation_steps", default=40, note=VERSION),
        sequence_length=reader.integer("block_size", default=1024, note=VERSION),
        compile=reader.flag("compile", default=True, note=VERSION),
        domain=reader.constant("language", VERSION),
        method=method,
        n_params=_size(reader) if scratch else UNKNOWN,
        log_every=reader.integer("log_interval", default=1, note=VERSION),
    )


def _precision(reader: Reader) -> Fields:
    word = reader.dtype("dtype")
    if word.value in ("fp16", "bf16"):
        return autocast(word, str(word.value)) | (torch_scaler(word) if word.value == "fp16" else {})
    return fp32(word) if word.value == "fp32" else {}


def _size(reader: Reader) -> Setting[int]:
    """12 n_embd^2 per layer, and the embeddings of 50304 tokens."""
    layers, width = reader.integer("n_layer", default=12, note=VERSION), reader.integer("n_embd", default=768, note=VERSION)
    if layers.value is None or width.value is None or not 0 < layers.value < 10_000 or not 0 < width.value < 10**6:
        return UNKNOWN
    return Setting(12 * layers.value * width.value**2 + 50_304 * width.value, Origin.DERIVED, width.at, None, "from n_layer and n_embd")


DIALECT = Dialect(title="nanoGPT", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift, python=True)
