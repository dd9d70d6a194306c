"""The YAML of latent diffusion (`ldm`, `sgm`, `taming`): classes by `target`, Lightning's Trainer under `lightning`.

`main.py` of `ldm` and `taming` multiplies `base_learning_rate` with accumulation, GPUs and batch, unless told `--scale_lr False`; that of `sgm`
does not unless told to. Defaults: generative-models of 2025.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import clipping, joined
from mpdoctor.check.lightning_precision import precision_fields, requested
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "generative-models 0.1"
_TRAINER = "lightning.trainer"


def claim(document: Document) -> float:
    """A base learning rate beside the model's target is conclusive; a config for sampling has none."""
    return 90 if document.get("model.base_learning_rate") is not None and document.get("model.target") is not None else 0


def lift(reader: Reader) -> TrainingConfig:
    """The Trainer's arguments and the model's learning rate."""
    target = str(reader.text("model.target").value)
    precision = reader.text(f"{_TRAINER}.precision", default="32-true", note="Lightning")
    clip = reader.number(f"{_TRAINER}.gradient_clip_val", default=0.0, note="Lightning: no clipping unless asked for")
    return TrainingConfig(
        dialect="latent_diffusion",
        files=(reader.path,),
        **joined(precision_fields(precision, fsdp=False, deepspeed=False) | requested(precision), clipping(clip)),
        lr=reader.number("model.base_learning_rate") if target.startswith("sgm.") else UNKNOWN,
        total_steps=reader.integer(f"{_TRAINER}.max_steps"),
        epochs=reader.number(f"{_TRAINER}.max_epochs"),
        accumulation_steps=reader.integer(f"{_TRAINER}.accumulate_grad_batches", default=1, note="Lightning"),
        micro_batch=reader.integer("data.params.batch_size"),
        domain=reader.constant("diffusion", VERSION),
        anomaly_mode=reader.flag(f"{_TRAINER}.detect_anomaly", default=False, note="Lightning"),
    )


DIALECT = Dialect(title="latent diffusion (ldm, sgm)", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
