"""The run's training settings, as its checkpoint saved them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint

_NAMES: Mapping[str, tuple[str, ...]] = {
    "fp16": ("fp16",),
    "bf16": ("bf16",),
    "fp16_full_eval": ("fp16_full_eval",),
    "bf16_full_eval": ("bf16_full_eval",),
    "half_precision_backend": ("half_precision_backend",),
    "precision": ("precision", "mixed_precision"),
    "tf32": ("tf32",),
    "loss_scale": ("loss_scale",),
    "initial_loss_scale": ("initial_loss_scale",),
    "learning_rate": ("learning_rate", "lr"),
    "adam_beta1": ("adam_beta1",),
    "adam_beta2": ("adam_beta2",),
    "adam_epsilon": ("adam_epsilon", "adam_eps", "eps"),
    "weight_decay": ("weight_decay",),
    "max_grad_norm": ("max_grad_norm", "clip_grad", "gradient_clip_val", "grad_clip"),
    "gradient_accumulation_steps": ("gradient_accumulation_steps", "accumulate_grad_batches"),
    "optim": ("optim", "optimizer"),
    "optim_args": ("optim_args",),
    "lr_scheduler_type": ("lr_scheduler_type", "lr_decay_style"),
    "lr_scheduler_kwargs": ("lr_scheduler_kwargs",),
    "warmup_steps": ("warmup_steps", "lr_warmup_iters"),
    "warmup_ratio": ("warmup_ratio",),
    "max_steps": ("max_steps", "train_iters"),
    "num_train_epochs": ("num_train_epochs",),
    "per_device_train_batch_size": ("per_device_train_batch_size", "micro_batch_size", "train_batch_size"),
    "seed": ("seed",),
    "data_seed": ("data_seed",),
    "train_sampling_strategy": ("train_sampling_strategy",),
    "group_by_length": ("group_by_length",),
    "dataloader_drop_last": ("dataloader_drop_last",),
    "full_determinism": ("full_determinism",),
    "label_smoothing_factor": ("label_smoothing_factor",),
    "gradient_checkpointing": ("gradient_checkpointing", "activation_checkpointing"),
    "logging_steps": ("logging_steps",),
    "logging_nan_inf_filter": ("logging_nan_inf_filter",),
    "torch_compile": ("torch_compile",),
    "use_cpu": ("use_cpu", "no_cuda"),
    "neftune_noise_alpha": ("neftune_noise_alpha",),
    "remove_unused_columns": ("remove_unused_columns",),
    "deepspeed": ("deepspeed",),
    "fsdp": ("fsdp",),
    "model_init_kwargs": ("model_init_kwargs",),
    "output_dir": ("output_dir",),
}
"""Setting -> the names it goes by in Hugging Face, Megatron and Lightning files, first hit wins."""


def settings_from(checkpoint: Checkpoint) -> dict[str, Any]:
    """Training settings by Hugging Face's names; a setting that the checkpoint does not tell is absent.

    Sources, in order: the saved training arguments; the optimizer's groups (`learning_rate` is the
    group's `initial_lr` where a scheduler noted it, so that it is the configured one and not the one
    at this step; `lr_now` is the one at this step); the log's own fields.
    """
    found: dict[str, Any] = {}
    saved = checkpoint.training_args or {}
    for name, aliases in _NAMES.items():
        value = next((saved[alias] for alias in aliases if saved.get(alias) is not None), None)
        if value is not None:
            found[name] = value
    deepspeed = checkpoint.extra.get("ds_config")
    if isinstance(deepspeed, Mapping):
        _from_deepspeed(deepspeed, found)
    if checkpoint.param_groups:
        _from_groups(checkpoint.param_groups, found)
    state = checkpoint.trainer_state or {}
    if "max_steps" in state and found.get("max_steps", -1) in (-1, None):
        found["max_steps"] = state["max_steps"]
    if "train_batch_size" in state and state["train_batch_size"] and "per_device_train_batch_size" not in found:
        found["per_device_train_batch_size"] = state["train_batch_size"]
    return found


def compute_dtype(settings: Mapping[str, Any]) -> str | None:
    """`float16`, `bfloat16` or `float32`: what the run computed in, as far as its settings tell; else None."""
    if settings.get("fp16") is True:
        return "float16"
    if settings.get("bf16") is True:
        return "bfloat16"
    precision = str(settings.get("precision", "")).lower()
    if precision:
        if "bf16" in precision:
            return "bfloat16"
        if "16" in precision:
            return "float16"
        return "float32" if "32" in precision or precision == "no" else None
    return "float32" if settings.get("fp16") is False and settings.get("bf16") is False else None


def _from_deepspeed(config: Mapping[str, Any], found: dict[str, Any]) -> None:
    """What the run's DeepSpeed configuration says; DeepSpeed's own engine follows it, whatever the other settings are."""
    found.setdefault("deepspeed", True)
    for name, section in (("fp16", config.get("fp16")), ("bf16", config.get("bf16") or config.get("bfloat16"))):
        if isinstance(section, Mapping) and isinstance(section.get("enabled"), bool):
            found[name] = section["enabled"]
    scale = config["fp16"].get("loss_scale") if isinstance(config.get("fp16"), Mapping) else None
    if isinstance(scale, int | float) and scale > 0:
        found["loss_scale"] = scale
    if isinstance(config.get("gradient_clipping"), int | float):
        found.setdefault("max_grad_norm", config["gradient_clipping"])


def _from_groups(groups: tuple[Mapping[str, Any], ...], found: dict[str, Any]) -> None:
    first = groups[0]
    rates = [g["lr"] for g in groups if isinstance(g.get("lr"), int | float)]
    starts = [g["initial_lr"] for g in groups if isinstance(g.get("initial_lr"), int | float)]
    if rates:
        found["lr_now"] = max(rates)
    if starts or rates:
        found.setdefault("learning_rate", max(starts or rates))
    betas = first.get("betas")
    if isinstance(betas, list) and len(betas) == 2:
        found.setdefault("adam_beta1", betas[0])
        found.setdefault("adam_beta2", betas[1])
    if isinstance(first.get("eps"), int | float):
        found.setdefault("adam_epsilon", first["eps"])
    decays = [g["weight_decay"] for g in groups if isinstance(g.get("weight_decay"), int | float)]
    if decays:
        found.setdefault("weight_decay", max(decays))
