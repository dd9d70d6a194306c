"""LLaMA-Factory v1: `train_dataset`, `peft_config`, `dist_config`. Defaults: LLaMA-Factory of August 2026."""

from __future__ import annotations

from mpdoctor.check import hf_arguments as hf
from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, fp32, joined, model_settings, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "LLaMA-Factory v1"
MARKS = ("model", "model_class", "peft_config", "dist_config", "kernel_config", "cutoff_len", "quant_config", "micro_batch_size", "template")


def claim(document: Document) -> float:
    """`train_dataset` and three of its keys."""
    found = count(document, MARKS)
    return 58 + found if "train_dataset" in document.keys and found >= 3 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The v1 layout."""
    peft = reader.text("peft_config.name")
    model = reader.text("model")
    clip = reader.number("max_grad_norm", default=1.0, note=VERSION)
    return TrainingConfig(
        dialect="llamafactory_v1",
        files=(reader.path,),
        **joined(
            _precision(reader), optimizer_settings(reader.text("optim_config.name", "optim", default="adamw", note=VERSION)), model_settings(model)
        ),
        lr=reader.number("learning_rate", default=1e-4, note=VERSION),
        weight_decay=reader.number("weight_decay"),
        clip_norm=clip,
        clip_kind=clip.becomes("norm" if clip.value else "none") if clip.known else UNKNOWN,
        warmup_ratio=reader.number("lr_scheduler_config.warmup_ratio", "warmup_ratio"),
        total_steps=hf.positive(reader.integer("max_steps")),
        epochs=reader.number("num_train_epochs"),
        micro_batch=reader.integer("micro_batch_size"),
        global_batch=reader.integer("global_batch_size"),
        sequence_length=reader.integer("cutoff_len"),
        distributed=_distributed(reader),
        domain=model.becomes("language") if model.known else UNKNOWN,
        method=_method(reader, peft),
        lora_rank=reader.integer("peft_config.r"),
        lora_alpha=reader.number("peft_config.lora_alpha"),
        quantization=_quantization(reader),
        log_every=reader.integer("logging_steps", default=1, note=VERSION),
    )


def _precision(reader: Reader) -> Fields:
    bf16 = reader.flag("bf16")
    if bf16.value:
        return autocast(bf16, "bf16") | {"bf16_requested": bf16, "master_dtype": UNKNOWN, "param_dtype": UNKNOWN, "precision_mode": UNKNOWN}
    if bf16.value is False:
        return fp32(bf16)
    return {}


def _distributed(reader: Reader) -> Setting[str]:
    name = reader.text("dist_config.name")
    kinds = {"fsdp2": "fsdp2", "fsdp": "fsdp1", "ddp": "ddp"}
    return name.becomes(kinds[str(name.value)]) if str(name.value) in kinds else UNKNOWN


def _method(reader: Reader, peft: Setting[str]) -> Setting[str]:
    if peft.known:
        quantised = reader.has("quant_config")
        return peft.becomes({"lora": "qlora" if quantised else "lora", "freeze": "freeze"}.get(str(peft.value), "other_peft"))
    model = reader.text("model")
    return model.becomes("full_ft", "no peft_config") if model.known else UNKNOWN


def _quantization(reader: Reader) -> Setting[str]:
    bits = reader.integer("quant_config.quantization_bit")
    return bits.becomes(f"bnb{bits.value}") if bits.value in (4, 8) else UNKNOWN


DIALECT = Dialect(title="LLaMA-Factory v1", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
