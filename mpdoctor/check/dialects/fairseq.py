"""fairseq's Hydra YAML, and the flags of `fairseq-train`.

`common.fp16` makes the whole model fp16 with fp32 copies in the optimizer; `common.amp` is autocast. The
default learning rate is 0.25, clipping is off by default. Defaults: fairseq of 2025.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, master_weights, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "fairseq 0.12"
MARKS = ("common", "task", "criterion", "optimization", "distributed_training", "dataset", "lr_scheduler", "optimizer", "checkpoint")
ARGUMENTS = (
    "task",
    "arch",
    "criterion",
    "optimizer",
    "lr_scheduler",
    "max_tokens",
    "update_freq",
    "warmup_updates",
    "clip_norm",
    "max_update",
    "adam_betas",
)
"""Flags of `fairseq-train`."""
_TELLING = ("common", "task", "criterion", "optimization")


def claim(document: Document) -> float:
    """Four of its groups, or the header and two."""
    if document.syntax == "arguments":
        return 45 + count(document, ARGUMENTS) if document.get("criterion") is not None and count(document, ARGUMENTS) >= 4 else 0
    # Groups are mappings (a tokenizer's vocabulary holds the same words), or names of groups that Hydra composes.
    groups = {key for key, node in document.root.mapping.items() if node.is_mapping}
    found = len(groups.intersection(MARKS))
    header = document.text.lstrip().startswith("# @package")
    if len(groups.intersection(_TELLING)) < 2 or not (found >= 4 or (header and found >= 3)):
        return 0
    return 40 + 3 * found + 5 * header


def lift(reader: Reader) -> TrainingConfig:
    """The groups that matter here."""
    name = reader.text("optimizer._name", "optimizer")
    return TrainingConfig(
        dialect="fairseq",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(name),
            clipping(reader.number("optimization.clip_norm", "clip_norm", default=0.0, note=VERSION)),
        ),
        lr=reader.number("optimization.lr.0", "optimization.lr", "optimizer.lr.0", "lr.0", "lr", default=0.25, note=VERSION),
        eps=reader.number("optimizer.adam_eps", "adam_eps", default=1e-8, note=VERSION),
        **_betas(reader),
        weight_decay=reader.number("optimizer.weight_decay", "weight_decay", default=0.0, note=VERSION),
        schedule=reader.text("lr_scheduler._name", "lr_scheduler"),
        warmup_steps=reader.number("lr_scheduler.warmup_updates", "warmup_updates"),
        total_steps=reader.integer("optimization.max_update", "max_update"),
        epochs=reader.number("optimization.max_epoch"),
        accumulation_steps=reader.integer("optimization.update_freq.0", "update_freq", default=1, note=VERSION),
        micro_batch=reader.integer("dataset.batch_size"),
        world_size=reader.integer("distributed_training.distributed_world_size", "distributed_world_size"),
        lossy_communication=_hook(reader),
        distributed=_sharding(reader),
        domain=_domain(reader),
        method=_method(reader),
        log_every=reader.integer("common.log_interval", default=100, note=VERSION),
        extra={
            "fairseq.update_freq": reader.integer("optimization.update_freq.0", default=1, note=VERSION),
            "fairseq.fp16_scale_window": reader.integer("common.fp16_scale_window"),
        },
    )


def _precision(reader: Reader) -> Fields:
    common = {name: reader.flag(f"common.{name}", name, default=False, note=VERSION) for name in ("fp16", "bf16", "amp")}
    lean16, lean_b = reader.flag("common.memory_efficient_fp16", "memory_efficient_fp16"), reader.flag("common.memory_efficient_bf16")
    fp16 = lean16 if lean16.value else common["fp16"]
    bf16 = lean_b if lean_b.value else common["bf16"]
    asked: Fields = {"fp16_requested": fp16, "bf16_requested": bf16}
    if (fp16.value and bf16.value) or not fp16.known or not bf16.known:
        return asked
    scale: Fields = {
        "init_scale": reader.number("common.fp16_init_scale", "fp16_init_scale", default=128.0, note=VERSION),
        "growth_interval": reader.integer("common.fp16_scale_window"),
        "min_scale": reader.number("common.min_loss_scale", "min_loss_scale", default=1e-4, note=VERSION),
    }
    if common["amp"].value:
        return asked | autocast(common["amp"], "fp16") | scale | {"init_scale": reader.number("common.amp_init_scale", default=128.0, note=VERSION)}
    if not fp16.value and not bf16.value:
        return asked | fp32(fp16)
    at, compute = (fp16, "fp16") if fp16.value else (bf16, "bf16")
    fields = master_weights(at, compute, reduce=compute, note="FP16Optimizer keeps fp32 copies")
    if (lean16 if compute == "fp16" else lean_b).value:
        # No copies are kept, but each update is computed in fp32: what it loses is the rounding when it is written back.
        fields |= {"master_dtype": at.becomes("none", "memory-efficient: no separate fp32 copy"), "optimizer_state_dtype": at.becomes("fp32")}
    if reader.flag("distributed_training.fp32_reduce_scatter").value:
        fields["reduce_dtype"] = reader.flag("distributed_training.fp32_reduce_scatter").becomes("fp32")
    stats = reader.flag("optimizer.fp16_adam_stats")
    if stats.value:
        fields["optimizer_state_dtype"] = stats.becomes("fp16")
    return asked | fields | (scale if compute == "fp16" else {})


def _betas(reader: Reader) -> Fields:
    """`(0.9,0.98)` is text in these files."""
    text = reader.text("optimizer.adam_betas", "adam_betas")
    parts = str(text.value or "").strip("()[] ").split(",")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) != 2:
        return {"beta1": reader.number("optimizer.adam_betas.0"), "beta2": reader.number("optimizer.adam_betas.1")}
    return {"beta1": text.becomes(values[0]), "beta2": text.becomes(values[1])}


def _hook(reader: Reader) -> Setting[str]:
    hook = reader.text("distributed_training.ddp_comm_hook")
    return hook if hook.known and hook.value != "none" else UNKNOWN


def _sharding(reader: Reader) -> Setting[str]:
    backend = reader.text("distributed_training.ddp_backend")
    return backend.becomes("fsdp1" if backend.value == "fully_sharded" else "ddp") if backend.known else UNKNOWN


def _domain(reader: Reader) -> Setting[str]:
    task = reader.text("task._name", "task")
    name = str(task.value or "")
    if any(word in name for word in ("audio", "speech", "hubert", "wav2vec", "multires")):
        return task.becomes("speech")
    return task.becomes("language") if any(word in name for word in ("language_modeling", "masked_lm", "translation", "denoising")) else UNKNOWN


def _method(reader: Reader) -> Setting[str]:
    task = reader.text("task._name", "task")
    return task.becomes("pretrain") if any(word in str(task.value) for word in ("language_modeling", "masked_lm", "denoising")) else UNKNOWN


DIALECT = Dialect(title="fairseq", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
