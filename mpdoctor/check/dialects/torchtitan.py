"""torchtitan's job TOML (until early 2026; its successor is Python).

fp32 parameters, bf16 compute by FSDP, fp32 reduction, unless `training.dtype` makes the parameters bf16.
Defaults: torchtitan of 2025 (`config/job_config.py`) and of August 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, pure
from mpdoctor.check.models import model_family, parameter_count
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "torchtitan 0.2"
MARKS = ("job", "metrics", "checkpoint", "activation_checkpoint", "model", "profiling", "float8", "lr_scheduler", "optimizer")


def claim(document: Document) -> float:
    """Tables `training` and `parallelism` and two of the others."""
    found = count(document, MARKS)
    return 55 + found if {"training", "parallelism"} <= document.keys and found >= 2 else 0


def lift(reader: Reader) -> TrainingConfig:
    """A training job."""
    flavour, name = reader.text("model.flavor"), reader.text("model.name")
    text = f"{name.value or ''}-{flavour.value or ''}"
    return TrainingConfig(
        dialect="torchtitan",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.text("optimizer.name", default="AdamW", note=VERSION)),
            clipping(reader.number("training.max_norm", default=1.0, note=VERSION)),
            _fp8(reader),
        ),
        lr=reader.number("optimizer.lr", default=8e-4, note=VERSION),
        eps=reader.number("optimizer.eps", default=1e-8, note=VERSION),
        beta1=reader.number("optimizer.beta1", default=0.9, note=VERSION),
        beta2=reader.number("optimizer.beta2", default=0.95, note=VERSION),
        weight_decay=reader.number("optimizer.weight_decay", default=0.1, note=VERSION),
        optimizer_in_backward=reader.flag("optimizer.early_step_in_backward"),
        compensated=UNKNOWN,
        warmup_steps=reader.number("lr_scheduler.warmup_steps", "training.warmup_steps", default=200.0, note=VERSION),
        schedule=reader.text("lr_scheduler.decay_type", default="linear", note=VERSION),
        total_steps=reader.integer("training.steps", default=10_000, note=VERSION),
        micro_batch=reader.integer("training.local_batch_size", "training.batch_size", default=8, note=VERSION),
        global_batch=_positive(reader.integer("training.global_batch_size")),
        sequence_length=reader.integer("training.seq_len", default=2048, note=VERSION),
        distributed=reader.constant("fsdp2", VERSION),
        domain=name.becomes("language") if name.known and str(name.value) not in ("flux",) else UNKNOWN,
        method=name.becomes("pretrain", "torchtitan pretrains") if name.known and str(name.value) not in ("flux",) else UNKNOWN,
        model=name.becomes(text) if name.known else UNKNOWN,
        model_family=name.becomes(model_family(text)) if model_family(text) else UNKNOWN,
        n_params=flavour.becomes(parameter_count(text)) if parameter_count(text) else UNKNOWN,
        save_dtype=reader.dtype("checkpoint.export_dtype"),
        compile=reader.flag("training.compile", "compile.enable", default=False, note=VERSION),
        anomaly_mode=reader.flag("debug.detect_anomaly"),
        log_every=reader.integer("metrics.log_freq", default=10, note=VERSION),
        nan_check=reader.constant(True, "torchtitan asserts a finite loss and norm before it steps"),
    )


def _precision(reader: Reader) -> Fields:
    params = reader.dtype("training.dtype")
    if params.value in ("bf16", "fp16"):
        return pure(params, str(params.value), note="parameters, gradients and states in this dtype")
    compute = reader.dtype("training.mixed_precision_param", default="bf16", note=VERSION)
    if compute.value == "fp32":
        return fp32(compute)
    if compute.value not in ("bf16", "fp16"):
        return {}
    fields = autocast(compute, str(compute.value), note="FSDP's mixed precision over fp32 parameters")
    fields["reduce_dtype"] = reader.dtype("training.mixed_precision_reduce", default="fp32", note=VERSION)
    # FSDP's mixed precision brings no gradient scaler.
    fields["scaler"] = compute.becomes("none")
    if reader.text("optimizer.implementation").value == "fused_opt_states_bf16":
        fields["optimizer_state_dtype"] = reader.text("optimizer.implementation").becomes("bf16")
    return fields


def _fp8(reader: Reader) -> Fields:
    converters = reader.node("model.converters")
    words = [str(node.value) for node in converters.items] if converters is not None else []
    if converters is None or not words:
        return {}
    on: Setting[bool] = Setting(True, reader.text("model.converters.0").origin, converters.span("model.converters"), ", ".join(words))
    if "float8" in words:
        return {
            "fp8": on,
            "fp8_backend": reader.constant("ao", VERSION),
            "fp8_recipe": reader.text("float8.recipe_name", default="tensorwise", note=VERSION),
            "fp8_allgather": reader.flag("float8.enable_fsdp_float8_all_gather"),
        }
    if "mx" in words:
        return {"fp8": on, "fp8_backend": reader.constant("ao", VERSION), "fp8_recipe": on.becomes("mxfp8")}
    return {}


def _positive(setting: Setting[int]) -> Setting[int]:
    return setting if setting.value is not None and setting.value > 0 else UNKNOWN


DIALECT = Dialect(title="torchtitan", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
