"""PyTorch Lightning: LightningCLI's YAML, `config.yaml` in a log folder, Hydra templates with a `trainer:`.

Defaults: Lightning 2.6 of July 2026.
"""

from __future__ import annotations

import re

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import clipping, joined, optimizer_settings
from mpdoctor.check.lightning_precision import precision_fields, requested
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "Lightning 2.6"
TRAINER_KEYS = (
    "precision", "max_epochs", "max_steps", "accelerator", "strategy", "devices", "num_nodes", "gradient_clip_val", "accumulate_grad_batches",
    "logger", "callbacks", "log_every_n_steps", "val_check_interval", "check_val_every_n_epoch", "enable_progress_bar", "deterministic",
    "benchmark", "sync_batchnorm", "detect_anomaly", "plugins", "default_root_dir", "limit_train_batches", "enable_checkpointing", "min_epochs",
)  # fmt: skip
_HEADER = re.compile(r"# (lightning\.pytorch|pytorch_lightning|lightning)==(\S+)")


def claim(document: Document) -> float:
    """The header that Lightning writes is conclusive; else a `trainer:` with its arguments, and no sign of NeMo."""
    if document.constructor == "LightningTrainer":
        return 90
    if _HEADER.match(document.text.lstrip()):
        return 95
    trainer = document.get("trainer") or document.get("fit.trainer")
    if trainer is None or not trainer.is_mapping:
        return 0
    known = sum(1 for key in TRAINER_KEYS if key in trainer.mapping)
    named = "lightning" in str(getattr(trainer.mapping.get("_target_"), "value", "")).lower()
    classes = count(document, ("seed_everything", "model.class_path", "data.class_path", "optimizer.class_path", "fit"))
    if (known >= 2 or (known and (named or classes))) and "exp_manager" not in document.keys and document.get("model.optim") is None:
        return 30 + known + 3 * classes + 10 * named
    return 0


def lift(reader: Reader) -> TrainingConfig:
    """The Trainer's arguments; the optimizer where LightningCLI has it, or the model's own arguments."""
    if reader.document.constructor == "LightningTrainer":
        root = Node({"trainer": reader.document.root}, reader.path, reader.document.root.line, 1)
        reader = Reader(reader.document.with_root(root), siblings=reader.siblings, version=reader.version)
    strategy = _named(reader, "trainer.strategy")
    fsdp, deepspeed = "fsdp" in str(strategy.value).lower(), "deepspeed" in str(strategy.value).lower()
    precision = _precision(reader)
    fields = precision_fields(precision, fsdp=fsdp, deepspeed=deepspeed) | requested(precision)
    if fields.get("scaler") and fields["scaler"].value == "dynamic" and deepspeed:
        fields |= _deepspeed_scaler(reader)
    clip = reader.number(*_at("trainer.gradient_clip_val"), default=0.0, note=f"{VERSION}: no clipping unless asked for")
    by_value = reader.text(*_at("trainer.gradient_clip_algorithm")).value == "value"
    optimizer = optimizer_settings(_class(reader, "optimizer", "model.init_args.optimizer"))
    fused = reader.flag(*_at("optimizer.init_args.fused"))
    return TrainingConfig(
        dialect="lightning",
        files=(reader.path,),
        framework_version=_version(reader),
        **joined(
            fields,
            (optimizer | ({"optimizer_fused": fused} if fused.known else {})),
            clipping(clip, "value" if by_value else "norm"),
            _init_args(reader),
        ),
        schedule=_class(reader, "lr_scheduler", "model.init_args.lr_scheduler"),
        total_steps=_positive(reader.integer(*_at("trainer.max_steps"))),
        epochs=reader.number(*_at("trainer.max_epochs")),
        accumulation_steps=reader.integer(*_at("trainer.accumulate_grad_batches"), default=1, note=VERSION),
        micro_batch=reader.integer(*_at("data.init_args.batch_size"), *_at("data.batch_size")),
        distributed=_distributed(strategy),
        anomaly_mode=reader.flag(*_at("trainer.detect_anomaly"), default=False, note=VERSION),
        log_every=reader.integer(*_at("trainer.log_every_n_steps"), default=50, note=VERSION),
        extra={
            "lightning.precision": precision,
            "lightning.strategy": strategy,
            "scaling.unused": _scaler(reader),
            "lightning.sync_batchnorm": reader.flag(*_at("trainer.sync_batchnorm")),
        },
    )


def _at(path: str) -> tuple[str, str]:
    """A path with and without the `fit:` that LightningCLI writes around subcommands."""
    return path, f"fit.{path}"


def _precision(reader: Reader) -> Setting[str]:
    """The word; a precision plugin overrides it."""
    for index in range(8):
        plugin = reader.text(*_at(f"trainer.plugins.{index}.class_path"))
        name = str(plugin.value or "").rpartition(".")[2]
        if name in ("MixedPrecision", "HalfPrecision", "FSDPPrecision", "DeepSpeedPrecision"):
            word = reader.text(*_at(f"trainer.plugins.{index}.init_args.precision"))
            if word.known:
                return word
    return reader.text(*_at("trainer.precision"), default="32-true", note=VERSION)


def _named(reader: Reader, path: str) -> Setting[str]:
    """A name, or the class path of an object."""
    found = reader.text(*_at(f"{path}.class_path"), *_at(f"{path}._target_"))
    return found if found.known else reader.text(*_at(path))


def _class(reader: Reader, *paths: str) -> Setting[str]:
    """The last part of a class path."""
    for path in paths:
        found = _named(reader, path)
        if found.known:
            return found.becomes(str(found.value).rpartition(".")[2])
    return UNKNOWN


def _init_args(reader: Reader) -> Fields:
    def number(*names: str) -> Setting[float]:
        paths = [
            path for name in names for base in ("optimizer.init_args", "optimizer", "model.init_args", "model") for path in _at(f"{base}.{name}")
        ]
        return reader.number(*paths)

    return {
        "lr": number("lr", "learning_rate"),
        "eps": number("eps"),
        "beta1": number("betas.0"),
        "beta2": number("betas.1"),
        "weight_decay": number("weight_decay"),
        "warmup_steps": number("warmup_steps", "num_warmup_steps"),
    }


def _deepspeed_scaler(reader: Reader) -> Fields:
    base = "trainer.strategy.init_args"
    static = reader.number(*_at(f"{base}.loss_scale"), default=0.0, note=VERSION)
    if static.value:
        return {"scaler": static.becomes("static"), "static_scale": static}
    power = reader.number(*_at(f"{base}.initial_scale_power"), default=16.0, note=VERSION)
    usable = power.value is not None and abs(power.value) < 1000
    return {
        "init_scale": power.becomes(2.0 ** float(power.value or 0)) if usable else UNKNOWN,
        "growth_interval": reader.integer(*_at(f"{base}.loss_scale_window"), default=1000, note=VERSION),
        "hysteresis": reader.integer(*_at(f"{base}.hysteresis"), default=2, note=VERSION),
        "min_scale": reader.number(*_at(f"{base}.min_loss_scale"), default=1.0, note=VERSION),
    }


def _scaler(reader: Reader) -> Setting[str]:
    """A scaler that a precision plugin is given."""
    for index in range(8):
        scaler = reader.text(*_at(f"trainer.plugins.{index}.init_args.scaler.class_path"), *_at(f"trainer.plugins.{index}.init_args.scaler"))
        if scaler.known:
            return scaler
    return UNKNOWN


def _distributed(strategy: Setting[str]) -> Setting[str]:
    name = str(strategy.value or "").lower()
    if not strategy.known or name == "auto":
        return UNKNOWN
    stage = re.search(r"stage_?(\d)", name)
    if "deepspeed" in name:
        return strategy.becomes(f"zero{stage[1]}" if stage else "zero2")
    return strategy.becomes("fsdp1" if "fsdp" in name else "ddp" if "ddp" in name else "none" if "single" in name else "other")


def _version(reader: Reader) -> Setting[str]:
    match = _HEADER.match(reader.document.text.lstrip())
    return reader.constant(match[2], "from the file's first line") if match else UNKNOWN


def _positive(setting: Setting[int]) -> Setting[int]:
    return setting if setting.value is not None and setting.value > 0 else UNKNOWN


DIALECT = Dialect(title="PyTorch Lightning", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
