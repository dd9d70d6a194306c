"""Unsloth studio's YAML. The precision is chosen when the model loads (bf16 where supported, else fp16)."""

from __future__ import annotations

from mpdoctor.check import hf_arguments as hf
from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import joined, model_settings, optimizer_settings
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "Unsloth 2026"
MARKS = ("training_type", "load_in_4bit", "max_seq_length", "random_seed", "max_steps", "learning_rate", "optim", "warmup_steps")


def claim(document: Document) -> float:
    """A `training` map with two of its keys, and a `lora` map."""
    training, lora = document.get("training"), document.get("lora")
    if training is None or lora is None or not lora.is_mapping:
        return 0
    found = sum(1 for key in MARKS if key in training.mapping)
    return 58 + found if found >= 2 and "parallelism" not in document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """The training and LoRA maps; dtypes stay unknown."""
    quantised = reader.flag("training.load_in_4bit")
    kind = str(reader.text("training.training_type").value or "lora").lower()
    lora = reader.integer("lora.r", "lora.lora_r", "lora.rank")
    method = reader.text("training.training_type", default="lora", note=VERSION)
    return TrainingConfig(
        dialect="unsloth_studio",
        files=(reader.path,),
        **joined(
            optimizer_settings(reader.text("training.optim", default="adamw_8bit", note=VERSION)),
            model_settings(reader.text("model", "model.name", "model.model_name", "base_model")),
        ),
        lr=reader.number("training.learning_rate"),
        weight_decay=reader.number("training.weight_decay"),
        warmup_steps=reader.number("training.warmup_steps"),
        warmup_ratio=reader.number("training.warmup_ratio"),
        schedule=reader.text("training.lr_scheduler_type"),
        total_steps=hf.positive(reader.integer("training.max_steps")),
        epochs=reader.number("training.num_epochs", "training.num_train_epochs"),
        micro_batch=reader.integer("training.batch_size", "training.per_device_train_batch_size"),
        accumulation_steps=reader.integer("training.gradient_accumulation_steps"),
        sequence_length=reader.integer("training.max_seq_length"),
        packing=reader.flag("training.packing"),
        domain=reader.constant("language", VERSION),
        method=method.becomes("full_ft" if "full" in kind else "qlora" if quantised.value else "lora") if method.known else UNKNOWN,
        quantization=quantised.becomes("bnb4") if quantised.value else UNKNOWN,
        quant_type=reader.constant("nf4", VERSION) if quantised.value else UNKNOWN,
        lora_rank=lora,
        lora_alpha=reader.number("lora.lora_alpha", "lora.alpha"),
        lora_rank_stabilised=reader.flag("lora.use_rslora"),
    )


DIALECT = Dialect(title="Unsloth studio", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
