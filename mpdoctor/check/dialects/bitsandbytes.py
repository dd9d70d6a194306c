"""`BitsAndBytesConfig(...)` in a script: 4- or 8-bit weights. Its own defaults are fp32 compute and fp4."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "transformers 5.24"


def claim(document: Document) -> float:
    """The class's name."""
    return 100 if document.constructor == "BitsAndBytesConfig" else 0


def lift(reader: Reader) -> TrainingConfig:
    """How the weights are quantised."""
    four, eight = reader.flag("load_in_4bit"), reader.flag("load_in_8bit")
    if not four.value:
        return TrainingConfig(dialect="bitsandbytes", files=(reader.path,), quantization=eight.becomes("bnb8") if eight.value else UNKNOWN)
    return TrainingConfig(
        dialect="bitsandbytes",
        files=(reader.path,),
        quantization=four.becomes("bnb4"),
        quant_compute_dtype=reader.dtype("bnb_4bit_compute_dtype", default="fp32", note=VERSION),
        quant_storage_dtype=reader.dtype("bnb_4bit_quant_storage"),
        quant_type=reader.text("bnb_4bit_quant_type", default="fp4", note=VERSION),
    )


DIALECT = Dialect(title="BitsAndBytesConfig", role=Role.PART, version=VERSION, claim=claim, lift=lift)
