"""detectron2's YAML: upper-case groups, `SOLVER.AMP.ENABLED` for fp16 autocast.

SGD learning rates of vision, clipping inside the optimizer's step (after unscaling). Defaults: detectron2
of June 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "detectron2 0.6"
MARKS = ("MODEL", "SOLVER", "DATASETS", "INPUT", "_BASE_", "VERSION", "DATALOADER", "TEST")


def claim(document: Document) -> float:
    """Two of its upper-case groups."""
    found = count(document, MARKS)
    return 60 + found if found >= 2 and count(document, ("MODEL", "SOLVER", "_BASE_")) else 0


def lift(reader: Reader) -> TrainingConfig:
    """SOLVER, mostly."""
    enabled = reader.flag("SOLVER.AMP.ENABLED", default=False, note=VERSION)
    precision = fp32(enabled) if enabled.known else {}
    if enabled.value:
        precision = autocast(enabled, "fp16") | torch_scaler(enabled)
    matmul = reader.text("FLOAT32_PRECISION")
    scaled = reader.integer("SOLVER.REFERENCE_WORLD_SIZE")
    return TrainingConfig(
        dialect="detectron2",
        files=(reader.path,),
        **joined(precision, optimizer_settings(reader.text("SOLVER.OPTIMIZER", default="SGD", note=VERSION)), _clip(reader)),
        fp16_requested=enabled,
        tf32=matmul.becomes(str(matmul.value) in ("high", "medium")) if matmul.value else UNKNOWN,
        lr=reader.number("SOLVER.BASE_LR", default=0.001, note=VERSION),
        lr_scaled=scaled.becomes(bool(scaled.value)) if scaled.known else UNKNOWN,
        weight_decay=reader.number("SOLVER.WEIGHT_DECAY", default=1e-4, note=VERSION),
        schedule=reader.text("SOLVER.LR_SCHEDULER_NAME", default="WarmupMultiStepLR", note=VERSION),
        warmup_steps=reader.number("SOLVER.WARMUP_ITERS", default=1000.0, note=VERSION),
        total_steps=reader.integer("SOLVER.MAX_ITER", default=40_000, note=VERSION),
        global_batch=reader.integer("SOLVER.IMS_PER_BATCH", default=16, note=VERSION),
        domain=reader.constant("vision", VERSION),
        nan_check=reader.constant(True, "detectron2 raises on a non-finite loss"),
    )


def _clip(reader: Reader) -> Fields:
    enabled = reader.flag("SOLVER.CLIP_GRADIENTS.ENABLED", default=False, note=VERSION)
    if not enabled.value:
        return {"clip_kind": enabled.becomes("none")} if enabled.known else {}
    kind: Setting[str] = reader.text("SOLVER.CLIP_GRADIENTS.CLIP_TYPE", default="value", note=VERSION)
    return {"clip_norm": reader.number("SOLVER.CLIP_GRADIENTS.CLIP_VALUE", default=1.0, note=VERSION), "clip_kind": kind}


DIALECT = Dialect(title="detectron2", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
