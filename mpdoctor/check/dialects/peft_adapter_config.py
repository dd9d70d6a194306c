"""PEFT's `adapter_config.json`: rank, scale and targets of an adapter."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import model_settings
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig


def claim(document: Document) -> float:
    """`peft_type` and the base model."""
    return 80 if {"peft_type", "base_model_name_or_path"} <= document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """The adapter; nothing about the run."""
    kind = reader.text("peft_type")
    return TrainingConfig(
        dialect="peft_adapter_config",
        files=(reader.path,),
        **model_settings(reader.text("base_model_name_or_path")),
        method=kind.becomes("lora" if "LORA" in str(kind.value).upper() else "other_peft") if kind.known else UNKNOWN,
        lora_rank=reader.integer("r"),
        lora_alpha=reader.number("lora_alpha"),
        lora_rank_stabilised=reader.flag("use_rslora"),
    )


DIALECT = Dialect(title="PEFT adapter config", role=Role.MODEL, version="peft 0.21", claim=claim, lift=lift)
