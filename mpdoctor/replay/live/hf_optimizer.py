"""Optimizer and scheduler of a Trainer run, in the state of its checkpoint."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput


def build_optimizer(model: torch.nn.Module, settings: dict[str, Any], state: Any, notes: list[str], folder: Path) -> torch.optim.Optimizer:
    """The optimizer that `optim` names over Trainer's two groups (with and without weight decay), with its saved state.

    Raises UnreadableInput when the saved state belongs to another set of parameters.
    """
    groups = _groups(model, float(settings.get("weight_decay") or 0.0), state)
    lr = float(settings.get("learning_rate") or 5e-5)
    betas = (float(settings.get("adam_beta1") or 0.9), float(settings.get("adam_beta2") or 0.999))
    eps = float(settings.get("adam_epsilon") or 1e-8)
    name = str(settings.get("optim") or "adamw_torch").rpartition(".")[2].lower()
    optimizer: torch.optim.Optimizer
    if name == "adafactor":
        from transformers.optimization import Adafactor

        optimizer = Adafactor(groups, lr=lr, scale_parameter=False, relative_step=False)
    elif name == "sgd":
        optimizer = torch.optim.SGD(groups, lr=lr)
    elif name == "adagrad":
        optimizer = torch.optim.Adagrad(groups, lr=lr)
    elif name == "rmsprop":
        optimizer = torch.optim.RMSprop(groups, lr=lr)
    else:
        if not name.startswith("adamw_torch") and name not in ("adamw_hf", "adamw"):
            note = f"the optimizer {name} is replaced by AdamW"
            if note not in notes:
                notes.append(note)
        optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps)
    if state is not None:
        try:
            optimizer.load_state_dict(copy.deepcopy(state))
        except (ValueError, KeyError) as error:
            raise UnreadableInput(
                f"{folder / 'optimizer.pt'}: does not fit the model: {error}",
                "The optimizer was built over other parameters; give a recipe (--recipe).",
            ) from None
        for group in optimizer.param_groups:
            group["foreach"], group["fused"] = group.get("foreach"), None  # a state saved on CUDA may ask for kernels that are not here
    return optimizer


def _groups(model: torch.nn.Module, decay: float, state: Any) -> list[dict[str, Any]]:
    """Trainer's groups; one group where the saved state has one."""
    from transformers.trainer_pt_utils import get_parameter_names

    forbidden = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
    try:
        decayed = set(get_parameter_names(model, [torch.nn.LayerNorm], forbidden))
    except TypeError:  # before transformers 4.50 there were no name patterns
        decayed = {n for n in get_parameter_names(model, [torch.nn.LayerNorm]) if "bias" not in n}
    trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    saved = state.get("param_groups") if isinstance(state, dict) else None
    if saved is not None and len(saved) == 1:
        return [{"params": [p for _, p in trainable], "weight_decay": decay}]
    groups = [
        {"params": [p for n, p in trainable if n in decayed], "weight_decay": decay},
        {"params": [p for n, p in trainable if n not in decayed], "weight_decay": 0.0},
    ]
    return [g for g in groups if g["params"]] if saved is None else groups


def build_scheduler(optimizer: torch.optim.Optimizer, settings: dict[str, Any], state: Any) -> Any:
    """The scheduler that `lr_scheduler_type` names, with its saved state; None where it cannot be rebuilt."""
    from transformers import get_scheduler

    total = int(settings.get("max_steps") or 0)
    kind = settings.get("lr_scheduler_type") or "linear"
    name = str(kind.get("value") if isinstance(kind, dict) else kind)
    warmup = int(settings.get("warmup_steps") or 0) or int(float(settings.get("warmup_ratio") or 0.0) * total)
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    if total <= 0 and name != "constant":
        return None
    specific = settings.get("lr_scheduler_kwargs")
    try:
        scheduler = get_scheduler(
            name,
            optimizer,
            num_warmup_steps=warmup,
            num_training_steps=total,
            scheduler_specific_kwargs=specific if isinstance(specific, dict) else None,
        )
    except (ValueError, TypeError):
        return None
    if isinstance(state, dict):
        scheduler.load_state_dict({k: v for k, v in state.items() if k != "lr_lambdas"} | {"lr_lambdas": [None] * len(optimizer.param_groups)})
    for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr(), strict=False):
        group["lr"] = rate
    return scheduler
