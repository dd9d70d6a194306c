"""What a launch line says about ranks and precision before the script's name: torchrun, deepspeed, accelerate launch."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "torch 2.6"


def claim(document: Document) -> float:
    """A launcher's own flags."""
    return 95 if document.syntax == "arguments" and document.constructor in ("torchrun", "deepspeed", "accelerate") else 0


def lift(reader: Reader) -> TrainingConfig:
    """Ranks; and precision, which only accelerate's flags set."""
    mixed = reader.text("mixed_precision")
    compute = mixed.becomes("fp32" if mixed.value in ("no", "false") else mixed.value) if mixed.known else UNKNOWN
    return TrainingConfig(
        dialect="launcher",
        files=(reader.path,),
        compute_dtype=compute if compute.value in ("fp16", "bf16", "fp32") else UNKNOWN,
        scaler=compute.becomes("dynamic" if compute.value == "fp16" else "none") if compute.value in ("fp16", "bf16", "fp32") else UNKNOWN,
        world_size=_ranks(reader),
        distributed=_sharding(reader),
        extra={"accelerate.mixed_precision": compute},
    )


def _ranks(reader: Reader) -> Setting[int]:
    """Processes per node times nodes."""
    total = reader.integer("num_processes")
    if total.known:
        return total
    per_node = reader.integer("nproc_per_node", "nproc-per-node", "num_gpus")
    nodes = reader.integer("nnodes", "num_nodes", "num_machines")
    if per_node.value is None or (not nodes.known and nodes.at is not None):
        return UNKNOWN
    return Setting(per_node.value * (nodes.value or 1), Origin.EXPLICIT, per_node.at, str(per_node.value * (nodes.value or 1)))


def _sharding(reader: Reader) -> Setting[str]:
    for key, kind in (("use_fsdp", "fsdp1"), ("use_deepspeed", "zero2"), ("multi_gpu", "ddp")):
        flag = reader.flag(key)
        if flag.value:
            stage = reader.integer("zero_stage")
            return flag.becomes(f"zero{stage.value}" if kind.startswith("zero") and stage.known else kind)
    return UNKNOWN


DIALECT = Dialect(title="a launch line", role=Role.LAUNCHER, version=VERSION, claim=claim, lift=lift)
