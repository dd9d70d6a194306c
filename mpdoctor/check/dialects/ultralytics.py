"""Ultralytics YOLO's `args.yaml`, and the `hyp.yaml` of YOLOv5 and YOLOv7.

`optimizer: auto` ignores `lr0`; gradients are clipped at 10 in code, after unscaling. Defaults: ultralytics 8.4.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "ultralytics 8.4"
OLDER = ("anchor_t", "fl_gamma", "cls_pw", "obj_pw", "obj")
"""Keys that only the hyper-parameters of YOLOv5 and YOLOv7 have."""
MARKS = ("lr0", "lrf", "warmup_bias_lr", "close_mosaic", "imgsz", "nbs", "box", "dfl", "mosaic", "hsv_h", "warmup_epochs")


def claim(document: Document) -> float:
    """Four of its hyper-parameters."""
    found = count(document, MARKS)
    return 60 + found if found >= 4 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The training arguments."""
    if count(reader.document, OLDER) >= 2:
        return _hyper_parameters(reader)
    optimizer = reader.text("optimizer", default="auto", note=VERSION)
    automatic = optimizer.value == "auto" or reader.document.get("optimizer") is None or optimizer.raw == "auto"
    named: Fields = {"optimizer": optimizer} if automatic else optimizer_settings(optimizer)
    return TrainingConfig(
        dialect="ultralytics",
        files=(reader.path,),
        **joined(_precision(reader), named),
        lr=reader.number("lr0", default=0.01, note=VERSION) if not automatic else UNKNOWN,
        weight_decay=reader.number("weight_decay", default=5e-4, note=VERSION),
        epochs=reader.number("epochs", default=100.0, note=VERSION),
        micro_batch=reader.integer("batch", default=16, note=VERSION),
        clip_norm=reader.constant(10.0, "ultralytics clips at 10 in code"),
        clip_kind=reader.constant("norm", "ultralytics clips at 10 in code"),
        domain=reader.constant("vision", VERSION),
        compile=reader.flag("compile"),
        extra={
            "ultralytics.lr0": reader.number("lr0"),
            "ultralytics.optimizer_auto": optimizer.becomes(True) if automatic and optimizer.known else reader.constant(automatic),
        },
    )


def _hyper_parameters(reader: Reader) -> TrainingConfig:
    """The `hyp.yaml` of YOLOv5 and YOLOv7: rates and losses; optimizer, batch and epochs are the command line's. AMP is always on."""
    note = "YOLOv5 and YOLOv7 train in fp16 autocast on GPUs"
    amp = reader.constant("fp16", note)
    return TrainingConfig(
        dialect="ultralytics",
        files=(reader.path,),
        **autocast(amp, "fp16", note=note),
        **torch_scaler(amp),
        lr=reader.number("lr0"),
        weight_decay=reader.number("weight_decay"),
        domain=reader.constant("vision", VERSION),
    )


def _precision(reader: Reader) -> Fields:
    word = reader.text("amp", default="true", note=VERSION)
    name = str(word.value).lower()
    if name in ("true", "fp16"):
        return autocast(word, "fp16") | torch_scaler(word) | {"fp16_requested": word.becomes(True)}
    if name == "bf16":
        return autocast(word, "bf16") | {"bf16_requested": word.becomes(True)}
    return fp32(word) if name in ("false", "fp32") else {}


DIALECT = Dialect(title="Ultralytics YOLO", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
