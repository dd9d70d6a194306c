"""DeepSpeed's `ds_config.json`: 16-bit weights with fp32 master copies, and its own loss scaler.

The file is hjson. `"auto"` is a placeholder that only the HF Trainer and Accelerate fill in; beside such a
file the values are taken from there. Defaults: DeepSpeed of August 2026.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import joined
from mpdoctor.check.optimizers import lr_is_peak, optimizer_family
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "DeepSpeed 0.17"
MARKS = (
    "zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer", "steps_per_print", "wall_clock_breakdown",
    "communication_data_type", "gradient_clipping", "prescale_gradients", "train_batch_size", "flops_profiler", "data_types",
)  # fmt: skip
BLOCKS = ("fp16", "bf16", "bfloat16", "amp", "torch_autocast")


def claim(document: Document) -> float:
    """Two of its keys, or one and a block that switches a precision on."""
    found = count(document, MARKS)
    blocks = sum(1 for key in BLOCKS if (node := document.get(key)) is not None and node.is_mapping)
    if found >= 2 or (found and blocks) or blocks >= 2:
        typed = document.get("optimizer.type") is not None and document.get("optimizer.params") is not None
        return 40 + 2 * found + 2 * blocks + 2 * typed
    return 0


def lift(reader: Reader) -> TrainingConfig:
    """The engine's share: precision, scaler, ZeRO, communication, and the optimizer where it stands here."""
    fp16, bf16 = enabled(reader, "fp16"), enabled(reader, "bf16", "bfloat16")
    compute, pure = _compute(reader, fp16, bf16)
    comm = reader.dtype("communication_data_type")
    optimizer = reader.text("optimizer.type")
    stage = reader.integer("zero_optimization.stage", default=0, note=VERSION)
    clip = _filled(reader, reader.number, "gradient_clipping", "clip_norm", default=1.0)
    return TrainingConfig(
        dialect="deepspeed",
        files=(reader.path,),
        fp16_requested=fp16,
        bf16_requested=bf16,
        compute_dtype=compute,
        **joined(
            (_weights(reader, compute, pure) if compute.value in ("fp16", "bf16") else {}),
            (loss_scale(reader, compute) if compute.value == "fp16" else {}),
        ),
        reduce_dtype=comm if comm.known else compute.becomes(compute.value, "communication_data_type unset") if compute.known else UNKNOWN,
        grad_accum_dtype=reader.dtype("data_types.grad_accum_dtype"),
        buffer_dtype=reader.dtype("data_types.buffer_dtype"),
        apex_level=reader.text("amp.opt_level", default="O1", note=VERSION) if reader.flag("amp.enabled").value else UNKNOWN,
        optimizer=optimizer,
        optimizer_family=optimizer.becomes(optimizer_family(str(optimizer.value))) if optimizer.known else UNKNOWN,
        lr=_filled(reader, reader.number, "optimizer.params.lr", "lr"),
        lr_is_peak=optimizer.becomes(lr_is_peak(optimizer_family(str(optimizer.value)))) if optimizer.known else UNKNOWN,
        eps=_filled(reader, reader.number, "optimizer.params.eps", "eps", default=1e-8 if optimizer.known else None),
        beta1=_filled(reader, reader.number, "optimizer.params.betas.0", "beta1"),
        beta2=_filled(reader, reader.number, "optimizer.params.betas.1", "beta2", default=0.999 if optimizer.known else None),
        weight_decay=_filled(reader, reader.number, "optimizer.params.weight_decay", "weight_decay"),
        schedule=reader.text("scheduler.type"),
        warmup_steps=_filled(reader, reader.number, "scheduler.params.warmup_num_steps", "warmup_steps"),
        total_steps=_filled(reader, reader.integer, "scheduler.params.total_num_steps", "total_steps"),
        clip_norm=clip,
        clip_kind=clip.becomes("norm" if clip.value else "none") if clip.known else UNKNOWN,
        micro_batch=_filled(reader, reader.integer, "train_micro_batch_size_per_gpu", "micro_batch"),
        accumulation_steps=_filled(reader, reader.integer, "gradient_accumulation_steps", "accumulation_steps"),
        global_batch=_filled(reader, reader.integer, "train_batch_size", "global_batch"),
        distributed=stage.becomes(f"zero{stage.value}") if stage.known else UNKNOWN,
        allreduce_op=reader.text("gradient_allreduce_op", default="mean", note=VERSION),
        predivide=_predivide(reader),
        lossy_communication=_lossy(reader),
        nan_check=reader.flag("bf16.check_grad_overflow", "bfloat16.check_grad_overflow"),
        save_dtype=_save_dtype(reader, compute),
        extra={"deepspeed.auto_cast": reader.flag("fp16.auto_cast"), "deepspeed.zero_stage": stage, "scaling.unused": _unused(reader, compute)},
    )


def enabled(reader: Reader, *blocks: str) -> Setting[bool]:
    """Whether a precision block is on; `auto` takes the switch of a trainer's file beside it."""
    field = f"{'fp16' if blocks[0] == 'fp16' else 'bf16'}_requested"
    paths = tuple(f"{block}.enabled" for block in blocks)
    return _filled(reader, reader.flag, *paths, field=field, default=False)


def _filled(reader: Reader, read: Callable[..., Setting[Any]], *paths: str, field: str | None = None, default: object = None) -> Setting[Any]:
    """A setting; where it stands as `auto`, the one that a file beside this gives for the same field."""
    if field is None:
        *paths, field = paths  # type: ignore[assignment]
    setting = read(*paths) if default is None else read(*paths, default=default, note=VERSION)
    if setting.raw == "auto":
        for sibling in reader.siblings:
            given = sibling.setting(field)
            if given.known:
                return Setting(given.value, given.origin, given.at, given.raw, f"`auto` in {reader.path}")
    return setting


def _compute(reader: Reader, fp16: Setting[bool], bf16: Setting[bool]) -> tuple[Setting[str], Setting[bool]]:
    """What is computed in; and the switch that leaves out fp32 master weights, if one is on."""
    cast = reader.flag("torch_autocast.enabled")
    if cast.value:
        dtype = reader.dtype("torch_autocast.dtype", default="bf16", note=VERSION)
        return (dtype if dtype.explicit else cast.becomes(dtype.value)), UNKNOWN
    if (fp16.value and bf16.value) or not fp16.known or not bf16.known:
        one = fp16.becomes("fp16") if fp16.value and not bf16.known else bf16.becomes("bf16") if bf16.value and not fp16.known else UNKNOWN
        return one, UNKNOWN
    if fp16.value:
        return fp16.becomes("fp16"), reader.flag("fp16.fp16_master_weights_and_grads")
    if bf16.value:
        return bf16.becomes("bf16"), reader.flag("bf16.bf16_master_weights_and_grads", "bfloat16.bf16_master_weights_and_grads")
    return (bf16 if bf16.explicit else fp16).becomes("fp32"), UNKNOWN


def _weights(reader: Reader, compute: Setting[str], pure: Setting[bool]) -> Fields:
    if reader.flag("torch_autocast.enabled").value:
        return {"precision_mode": compute.becomes("autocast"), "param_dtype": compute.becomes("fp32"), "master_dtype": compute.becomes("params")}
    if pure.value:
        states = reader.flag("bf16.bf16_optimizer_states")
        return {
            "precision_mode": pure.becomes("pure_lowp"),
            "param_dtype": compute,
            "master_dtype": pure.becomes("none"),
            "optimizer_state_dtype": states.becomes("bf16") if states.value else compute.becomes("fp32"),
        }
    note = "DeepSpeed keeps fp32 master weights and states"
    return {
        "precision_mode": compute.becomes("master_weights", note),
        "param_dtype": compute,
        "master_dtype": compute.becomes("fp32", note),
        "optimizer_state_dtype": compute.becomes("fp32", note),
    }


def loss_scale(reader: Reader, compute: Setting[str], block: str = "fp16") -> Fields:
    """DeepSpeed's scaler: `loss_scale` 0 is dynamic, anything above is static."""
    static = reader.number(f"{block}.loss_scale", default=0.0, note=VERSION)
    if not static.known:
        return {}
    if static.value:
        return {"scaler": static.becomes("static"), "static_scale": static}
    power = reader.number(f"{block}.initial_scale_power", default=16.0, note=VERSION)
    usable = power.known and power.value is not None and abs(power.value) < 1000
    return {
        "scaler": static.becomes("dynamic") if static.explicit else compute.becomes("dynamic", f"{VERSION}: dynamic unless loss_scale is set"),
        "init_scale": power.becomes(2.0**power.value, f"2^{power.value:g}") if usable and power.value is not None else UNKNOWN,
        "growth_interval": reader.integer(f"{block}.loss_scale_window", default=1000, note=VERSION),
        "growth_factor": reader.constant(2.0, VERSION),
        "backoff_factor": reader.constant(0.5, VERSION),
        "hysteresis": reader.integer(f"{block}.hysteresis", default=2, note=VERSION),
        "min_scale": reader.number(f"{block}.min_loss_scale", default=1.0, note=VERSION),
    }


def _unused(reader: Reader, compute: Setting[str]) -> Setting[float]:
    """A fixed loss scale while fp16 is off. The other knobs of the block stand in every template."""
    static = reader.number("fp16.loss_scale")
    return static if static.value and compute.value in ("bf16", "fp32") else UNKNOWN


def _predivide(reader: Reader) -> Setting[bool]:
    factor = reader.number("gradient_predivide_factor")
    prescale = reader.flag("prescale_gradients", default=False, note=VERSION)
    return factor.becomes(True) if factor.value and factor.value > 1 else prescale


def _lossy(reader: Reader) -> Setting[str]:
    for key in ("zero_quantized_gradients", "zero_quantized_weights"):
        flag = reader.flag(f"zero_optimization.{key}")
        if flag.value:
            return flag.becomes(key)
    return UNKNOWN


def _save_dtype(reader: Reader, compute: Setting[str]) -> Setting[str]:
    for key in ("stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save"):
        flag = reader.flag(f"zero_optimization.{key}", key)
        if flag.value and compute.value in ("fp16", "bf16"):
            return Setting(compute.value, Origin.EXPLICIT, flag.at, flag.raw)
    return UNKNOWN


DIALECT = Dialect(title="DeepSpeed config", role=Role.ENGINE, version=VERSION, claim=claim, lift=lift)
