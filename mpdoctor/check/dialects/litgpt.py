"""LitGPT's YAML for `litgpt pretrain`, `finetune_full` and `finetune_lora`. Defaults: LitGPT 0.5 of 2026.

`precision` is Lightning's word. Without it LitGPT takes bf16-mixed or 16-mixed, whichever the GPU has. Only pretraining clips.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import clipping, joined, model_settings, optimizer_settings
from mpdoctor.check.lightning_precision import precision_fields, requested
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "LitGPT 0.5"
MARKS = (
    "train.global_batch_size", "train.micro_batch_size", "train.lr_warmup_steps", "train.save_interval", "train.max_seq_length", "train.max_tokens",
)  # fmt: skip
BESIDE = ("out_dir", "checkpoint_dir", "tokenizer_dir", "precision", "eval", "logger_name", "data", "optimizer", "lora_r", "quantize", "model_name")


def claim(document: Document) -> float:
    """Two of its training arguments, which it names unlike others, and three of the keys around them."""
    found, beside = count(document, MARKS), count(document, BESIDE)
    return 60 + found + beside if found >= 2 and beside >= 3 else 0


def lift(reader: Reader) -> TrainingConfig:
    """LitGPT's settings."""
    precision = reader.text("precision")
    method = _method(reader)
    return TrainingConfig(
        dialect="litgpt",
        files=(reader.path,),
        **joined(
            precision_fields(precision, fsdp=False, deepspeed=False) | requested(precision),
            optimizer_settings(_optimizer(reader)),
            model_settings(reader.text("model_name", "checkpoint_dir")),
            _clipping(reader, method),
            _quantization(reader),
        ),
        lr=reader.number("optimizer.init_args.lr"),
        eps=reader.number("optimizer.init_args.eps", default=1e-8, note="torch.optim"),
        beta2=reader.number("optimizer.init_args.betas.1", default=0.999, note="torch.optim"),
        weight_decay=reader.number("optimizer.init_args.weight_decay"),
        warmup_steps=reader.number("train.lr_warmup_steps", default=100.0, note=VERSION),
        total_steps=reader.integer("train.max_steps"),
        epochs=reader.number("train.epochs"),
        micro_batch=reader.integer("train.micro_batch_size"),
        global_batch=reader.integer("train.global_batch_size"),
        sequence_length=reader.integer("train.max_seq_length"),
        log_every=reader.integer("train.log_interval", default=1, note=VERSION),
        domain=reader.constant("language", VERSION),
        method=method,
        lora_rank=reader.integer("lora_r"),
        lora_alpha=reader.number("lora_alpha"),
    )


def _optimizer(reader: Reader) -> Setting[str]:
    path = reader.text("optimizer.class_path", "optimizer", default="AdamW", note=VERSION)
    return path.becomes(str(path.value).rpartition(".")[2]) if path.known else path


def _method(reader: Reader) -> Setting[str]:
    """What is trained. A file for adapters (`finetune_adapter`) reads like one for all weights but for `resume`."""
    rank, resume = reader.integer("lora_r"), reader.document.get("resume")
    if rank.written:
        return rank.becomes("qlora" if reader.has("quantize") else "lora")
    if reader.has("tokenizer_dir", "train.max_tokens", "model_name") and not reader.has("checkpoint_dir"):
        started = reader.text("initial_checkpoint_dir")
        return UNKNOWN if started.written else reader.constant("pretrain", VERSION)
    return reader.constant("full_ft", VERSION) if resume is not None else UNKNOWN


def _clipping(reader: Reader, method: Setting[str]) -> Fields:
    if method.value == "pretrain":
        return clipping(reader.number("train.max_norm", default=1.0, note=VERSION))
    return {"clip_kind": reader.constant("none", f"{VERSION} clips in pretraining alone")} if method.known else {}


def _quantization(reader: Reader) -> Fields:
    word = reader.text("quantize")
    kind = str(word.value).removeprefix("bnb.").partition("-")[0]
    names = {"nf4": ("bnb4", "nf4"), "fp4": ("bnb4", "fp4"), "int8": ("bnb8", None)}
    if kind not in names:
        return {}
    quantization, subtype = names[kind]
    fields: Fields = {"quantization": word.becomes(quantization)}
    return fields | ({"quant_type": word.becomes(subtype)} if subtype else {})


DIALECT = Dialect(title="LitGPT", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
