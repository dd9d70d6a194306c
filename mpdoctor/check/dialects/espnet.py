"""ESPnet's and WeNet's YAML for speech. Defaults: ESPnet 202412.

`optim` with `optim_conf`, `scheduler` with `scheduler_conf`. ESPnet's `use_amp` is fp16 autocast with torch's scaler; WeNet takes its precision
from the command line, so that its file alone does not tell it.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "ESPnet 202412"
MARKS = (
    "optim", "optim_conf", "scheduler", "scheduler_conf", "accum_grad", "grad_clip", "max_epoch", "encoder_conf", "decoder_conf", "model_conf",
    "batch_bins", "batch_type", "keep_nbest_models", "use_amp", "dataset_conf", "tts_conf", "generator_conf",
)  # fmt: skip
_WENET = ("dataset_conf", "dataset", "tokenizer_conf", "cmvn_conf", "cmvn_file")


def claim(document: Document) -> float:
    """An optimizer with its settings under `_conf`, and three more of its keys."""
    found = count(document, MARKS)
    return 60 + found if {"optim", "optim_conf"} <= document.keys and found >= 5 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The trainer's options."""
    schedule = reader.text("scheduler")
    # Noam's lr is a factor, not a step size.
    peak = "noam" not in str(schedule.value).lower()
    wenet = count(reader.document, _WENET) > 0
    clip = reader.number("grad_clip") if wenet else reader.number("grad_clip", default=5.0, note=VERSION)
    return TrainingConfig(
        dialect="espnet",
        files=(reader.path,),
        **joined(_precision(reader, wenet=wenet), optimizer_settings(reader.text("optim")), clipping(clip)),
        lr=reader.number("optim_conf.lr") if peak else UNKNOWN,
        eps=reader.number("optim_conf.eps"),
        weight_decay=reader.number("optim_conf.weight_decay"),
        schedule=schedule,
        warmup_steps=reader.number("scheduler_conf.warmup_steps"),
        epochs=reader.number("max_epoch"),
        accumulation_steps=reader.integer("accum_grad", default=1, note=VERSION),
        micro_batch=reader.integer("batch_size", "dataset_conf.batch_conf.batch_size"),
        domain=reader.constant("speech", VERSION),
        log_every=reader.integer("log_interval"),
    )


def _precision(reader: Reader, *, wenet: bool) -> Fields:
    flag = reader.flag("use_amp") if wenet else reader.flag("use_amp", default=False, note=VERSION)
    if not flag.known:
        return {}
    return autocast(flag, "fp16") | torch_scaler(flag) | {"fp16_requested": flag} if flag.value else fp32(flag)


DIALECT = Dialect(title="ESPnet / WeNet", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
