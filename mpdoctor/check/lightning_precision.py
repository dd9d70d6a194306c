"""Lightning's `precision`: one word for mode, dtype and scaler. NeMo 1 uses the same word.

Read from Lightning 2.6 of July 2026.
"""

from __future__ import annotations

from typing import Any

from mpdoctor.check.lifting import autocast, fp32, pure, torch_scaler
from mpdoctor.check.reader import Fields
from mpdoctor.core.training import Setting

ALIASES = {"16": "16-mixed", "32": "32-true", "64": "64-true", "bf16": "bf16-mixed"}
"""Spellings of Lightning 1; still taken, with a warning."""


def precision_fields(precision: Setting[str], *, fsdp: bool, deepspeed: bool) -> Fields:
    """Mode, dtypes and scaler. Under FSDP parameters, buffers and reduction take the 16-bit dtype, and shards stay fp32."""
    if not precision.known:
        return {}
    word = ALIASES.get(str(precision.value), str(precision.value))
    compute = "bf16" if word.startswith("bf16") else "fp16" if word.startswith("16") else "fp32"
    if word in ("16-mixed", "bf16-mixed"):
        fields = autocast(precision, compute, reduce=compute if fsdp else None)
        return fields | (torch_scaler(precision) if compute == "fp16" and not deepspeed else {})
    if word in ("16-true", "bf16-true"):
        if fsdp and compute == "bf16":
            return autocast(precision, compute, reduce=compute, note="FSDP keeps fp32 shards")
        return pure(precision, compute)
    if word.startswith("transformer-engine"):
        fallback = "fp16" if word.endswith("float16") else "bf16"
        fields = pure(precision, fallback)
        return fields | {"precision_mode": precision.becomes("fp8"), "fp8": precision.becomes(True), "fp8_backend": precision.becomes("te")}
    if word in ("32-true", "32", "64-true"):
        return fp32(precision)
    return {}


def requested(precision: Setting[Any]) -> Fields:
    """The switch as asked for."""
    word = str(precision.value)
    if not precision.known:
        return {}
    return {"fp16_requested": precision.becomes(word.startswith("16")), "bf16_requested": precision.becomes(word.startswith("bf16"))}
