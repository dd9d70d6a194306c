"""Open-Sora's Python configs over ColossalAI. eps 1e-15 is deliberate there. Read from Open-Sora of 2026."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import clipping, fp32, joined, master_weights, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import TrainingConfig

VERSION = "Open-Sora 2.0"
MARKS = ("plugin", "optim", "lr_scheduler", "grad_clip", "dtype", "ema_decay", "bucket_config", "plugin_config", "warmup_steps")


def claim(document: Document) -> float:
    """A Python file with `optim` and `plugin`."""
    if document.syntax != "python" or document.constructor:
        return 0
    found = count(document, MARKS)
    return 55 + found if document.get("optim.cls") is not None and "plugin" in document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """The module's assignments."""
    clip = reader.number("grad_clip", default=0.0, note=VERSION)
    return TrainingConfig(
        dialect="opensora",
        files=(reader.path,),
        **joined(_precision(reader), optimizer_settings(reader.text("optim.cls")), clipping(clip)),
        lr=reader.number("optim.lr"),
        eps=reader.number("optim.eps"),
        weight_decay=reader.number("optim.weight_decay"),
        warmup_steps=reader.number("warmup_steps", default=0.0, note=VERSION),
        epochs=reader.number("epochs"),
        accumulation_steps=reader.integer("accumulation_steps", default=1, note=VERSION),
        domain=reader.constant("diffusion", VERSION),
        ema_decay=reader.number("ema_decay"),
        ema_dtype=reader.dtype("ema_dtype"),
        log_every=reader.integer("log_every"),
    )


def _precision(reader: Reader) -> Fields:
    """The plugin keeps fp32 master weights; for fp16 it brings a scaler that starts at 2^16."""
    dtype = reader.dtype("dtype")
    if dtype.value in ("fp16", "bf16"):
        fields = master_weights(dtype, str(dtype.value), note="ColossalAI's plugin keeps fp32 copies")
        return fields | ({"init_scale": reader.constant(65536.0, VERSION)} if dtype.value == "fp16" else {})
    return fp32(dtype) if dtype.value == "fp32" else {}


DIALECT = Dialect(title="Open-Sora", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift, python=True)
