"""OpenMMLab's Python configs (mmengine, and mmcv before it), read by `ast`.

`AmpOptimWrapper` is autocast with a GradScaler whatever its dtype; a float `loss_scale` is static for the
whole run, an int is refused. Defaults: mmengine of October 2025.
"""

from __future__ import annotations

from typing import Any

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "mmengine 0.10"
MARKS = (
    "optim_wrapper",
    "default_hooks",
    "train_cfg",
    "_base_",
    "param_scheduler",
    "train_dataloader",
    "optimizer_config",
    "default_scope",
    "fp16",
    "lr_config",
)


def claim(document: Document) -> float:
    """A Python file that assigns one of its names to a dict, or has a base."""
    if document.syntax != "python" or document.constructor:
        return 0
    found = count(document, MARKS)
    telling = count(document, ("optim_wrapper", "default_hooks", "train_cfg", "optimizer_config", "param_scheduler", "_base_", "default_scope"))
    return 60 + found if telling else 0


def lift(reader: Reader) -> TrainingConfig:
    """The optimizer wrapper and what is around it."""
    wrapper = reader.text("optim_wrapper.type")
    optimizer = reader.text("optim_wrapper.optimizer.type", "optimizer.type")
    scaled = reader.integer("auto_scale_lr.base_batch_size")
    enabled = reader.flag("auto_scale_lr.enable")
    return TrainingConfig(
        dialect="mmengine",
        files=(reader.path,),
        **joined(_precision(reader, wrapper), optimizer_settings(optimizer), _clip(reader)),
        lr=reader.number("optim_wrapper.optimizer.lr", "optimizer.lr"),
        lr_scaled=scaled.becomes(True) if scaled.known and enabled.value else UNKNOWN,
        eps=reader.number("optim_wrapper.optimizer.eps", "optimizer.eps"),
        beta1=reader.number("optim_wrapper.optimizer.betas.0", "optimizer.betas.0"),
        beta2=reader.number("optim_wrapper.optimizer.betas.1", "optimizer.betas.1"),
        weight_decay=reader.number("optim_wrapper.optimizer.weight_decay", "optimizer.weight_decay"),
        warmup_steps=_warmup(reader),
        total_steps=reader.integer("train_cfg.max_iters"),
        epochs=reader.number("train_cfg.max_epochs", "runner.max_epochs"),
        micro_batch=reader.integer("train_dataloader.batch_size", "data.samples_per_gpu"),
        accumulation_steps=reader.integer("optim_wrapper.accumulative_counts", default=1, note=VERSION),
        domain=reader.constant("vision", VERSION),
        extra={"mmengine.loss_scale": _written(reader, "optim_wrapper.loss_scale"), "mmengine.wrapper": wrapper},
    )


def _precision(reader: Reader, wrapper: Setting[str]) -> Fields:
    legacy = reader.document.get("fp16")
    if not wrapper.known and legacy is not None and legacy.is_mapping:
        at: Setting[bool] = Setting(True, Origin.EXPLICIT, legacy.span("fp16"), None, "mmcv's fp16")
        return autocast(at, "fp16") | {"fp16_requested": at} | _scale(reader, "fp16.loss_scale", at)
    if not wrapper.known:
        return {}
    name = str(wrapper.value).rpartition(".")[2]
    if name == "OptimWrapper":
        return fp32(wrapper)
    if name not in ("AmpOptimWrapper", "ApexOptimWrapper"):
        return {}
    dtype = reader.dtype("optim_wrapper.dtype", default="fp16", note=f"{VERSION}: autocast's default")
    if dtype.value == "fp32":
        return fp32(dtype)
    if dtype.value not in ("fp16", "bf16"):
        return {}
    at_dtype = dtype if dtype.explicit else wrapper
    fields = autocast(at_dtype, str(dtype.value)) | {"fp16_requested": at_dtype.becomes(dtype.value == "fp16")}
    return fields | (_scale(reader, "optim_wrapper.loss_scale", wrapper) if dtype.value == "fp16" else {})


def _scale(reader: Reader, path: str, at: Setting[Any]) -> Fields:
    """`dynamic`, a number for the whole run, or GradScaler's arguments."""
    node = reader.document.get(path)
    if node is None or node.value == "dynamic" or node.is_mapping:
        numbers = torch_scaler(at)
        for field, key in (("init_scale", "init_scale"), ("growth_interval", "growth_interval")):
            given = reader.number(f"{path}.{key}")
            if given.known:
                numbers[field] = given
        return numbers
    static = reader.number(path)
    return {"scaler": static.becomes("static"), "static_scale": static} if static.known else {}


def _clip(reader: Reader) -> Fields:
    for base in ("optim_wrapper.clip_grad", "optimizer_config.grad_clip"):
        node = reader.node(base)
        if node is None:
            continue
        value = reader.number(f"{base}.clip_value")
        if value.known:
            return {"clip_norm": value, "clip_kind": value.becomes("value")}
        norm = reader.number(f"{base}.max_norm")
        return {"clip_norm": norm, "clip_kind": norm.becomes("norm")} if norm.known else {}
    return {"clip_kind": reader.constant("none", VERSION, key="optim_wrapper.clip_grad")} if reader.has("optim_wrapper") else {}


def _warmup(reader: Reader) -> Setting[float]:
    """A LinearLR at the start of the schedule, by iteration."""
    for index in range(6):
        kind = reader.text(f"param_scheduler.{index}.type")
        if kind.value == "LinearLR" and reader.flag(f"param_scheduler.{index}.by_epoch").value is False:
            return reader.number(f"param_scheduler.{index}.end")
    return UNKNOWN


def _written(reader: Reader, path: str) -> Setting[Any]:
    """A value with the type that it is written in: an int is refused where a float is taken."""
    node = reader.document.get(path)
    if node is None or node.pending or isinstance(node.value, (dict, list)):
        return UNKNOWN
    return Setting(node.value, Origin.EXPLICIT, node.span(path), node.raw)


DIALECT = Dialect(title="OpenMMLab (mmengine)", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift, python=True)
