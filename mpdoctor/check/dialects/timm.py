"""timm's `args.yaml`: training arguments of its `train.py`. Read from an older and a newer version of the script."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "timm 1.0"
MARKS = ("opt", "sched", "amp", "amp_dtype", "opt_eps", "native_amp", "apex_amp", "drop_path", "mixup", "smoothing", "decay_epochs", "model_ema")


def claim(document: Document) -> float:
    """`opt` and `sched` with three of the others."""
    return 55 + count(document, MARKS) if {"opt", "sched"} <= document.keys and count(document, MARKS) >= 5 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The script's arguments."""
    clip = reader.number("clip_grad", default=0.0, note=VERSION)
    automatic = reader.has("lr_base") and not reader.has("lr")
    ema = reader.flag("model_ema")
    return TrainingConfig(
        dialect="timm",
        files=(reader.path,),
        **joined(_precision(reader), optimizer_settings(reader.text("opt")), clipping(clip, str(reader.text("clip_mode", default="norm").value))),
        lr=reader.number("lr", "lr_base"),
        lr_scaled=reader.number("lr_base").becomes(True) if automatic else UNKNOWN,
        eps=reader.number("opt_eps"),
        beta1=reader.number("opt_betas.0"),
        beta2=reader.number("opt_betas.1"),
        weight_decay=reader.number("weight_decay"),
        schedule=reader.text("sched"),
        epochs=reader.number("epochs"),
        micro_batch=reader.integer("batch_size"),
        accumulation_steps=reader.integer("grad_accum_steps", default=1, note=VERSION),
        domain=reader.constant("vision", VERSION),
        ema_decay=reader.number("model_ema_decay") if ema.value else UNKNOWN,
        log_every=reader.integer("log_interval"),
    )


def _precision(reader: Reader) -> Fields:
    amp = reader.flag("amp", default=False, note=VERSION)
    native = reader.flag("native_amp")
    at = native if native.value else amp
    if not at.value:
        return fp32(at) if at.known else {}
    dtype = reader.dtype("amp_dtype", default="fp16", note=VERSION)
    compute = "bf16" if dtype.value == "bf16" else "fp16"
    source = dtype if dtype.explicit else at
    return autocast(source, compute) | (torch_scaler(source) if compute == "fp16" else {})


DIALECT = Dialect(title="timm", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
