"""AudioCraft's solver configs (Hydra). Defaults: AudioCraft 1.4.

`autocast` with `autocast_dtype`; in fp16 MusicGen makes a GradScaler. The solvers for diffusion, compression and watermarking stay in fp32.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "AudioCraft 1.4"
BESIDE = (
    "optim.updates_per_epoch", "optim.epochs", "optim.lr", "optim.optimizer", "schedule.lr_scheduler", "autocast", "autocast_dtype", "dataset",
    "sample_rate", "compression_model_checkpoint", "channels",
)  # fmt: skip


def claim(document: Document) -> float:
    """A solver by name, and four of the keys around it."""
    found = count(document, BESIDE)
    return 60 + found if "solver" in document.keys and "optim" in document.keys and found >= 4 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The solver's optimizer and autocast."""
    return TrainingConfig(
        dialect="audiocraft",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.text("optim.optimizer")),
            clipping(reader.number("optim.max_norm")) if reader.has("optim.max_norm") else {},
        ),
        lr=reader.number("optim.lr"),
        eps=reader.number("optim.adam.eps", default=1e-8, note=VERSION),
        beta2=reader.number("optim.adam.betas.1", default=0.999, note=VERSION),
        weight_decay=reader.number("optim.adam.weight_decay"),
        schedule=reader.text("schedule.lr_scheduler"),
        epochs=reader.number("optim.epochs"),
        global_batch=reader.integer("dataset.batch_size"),
        domain=reader.constant("speech", "AudioCraft makes sound"),
    )


def _precision(reader: Reader) -> Fields:
    switch = reader.flag("autocast", default=False, note=VERSION)
    dtype = reader.dtype("autocast_dtype")
    if not switch.known:
        return {}
    if not switch.value:
        return fp32(switch)
    if dtype.value not in ("fp16", "bf16"):
        return {"compute_dtype": UNKNOWN}
    fields = autocast(dtype, str(dtype.value)) | {"fp16_requested": dtype.becomes(dtype.value == "fp16")}
    return fields | (torch_scaler(dtype) if dtype.value == "fp16" else {})


DIALECT = Dialect(title="AudioCraft", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
