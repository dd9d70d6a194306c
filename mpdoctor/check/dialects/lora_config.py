"""PEFT's `LoraConfig(...)` in a script: rank and scale of an adapter."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import Origin, Setting, TrainingConfig


def claim(document: Document) -> float:
    """The class's name."""
    return 100 if document.constructor == "LoraConfig" else 0


def lift(reader: Reader) -> TrainingConfig:
    """The adapter."""
    root = reader.document.root
    return TrainingConfig(
        dialect="lora_config",
        files=(reader.path,),
        method=Setting("lora", Origin.DERIVED, root.span("LoraConfig"), None, "the script builds a LoraConfig"),
        lora_rank=reader.integer("r", default=8, note="peft 0.21"),
        lora_alpha=reader.number("lora_alpha", default=8.0, note="peft 0.21"),
        lora_rank_stabilised=reader.flag("use_rslora"),
    )


DIALECT = Dialect(title="LoraConfig in a script", role=Role.PART, version="peft 0.21", claim=claim, lift=lift)
