"""Optimizer and scheduler of a Trainer run, in the state of its checkpoint."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput

Named = list[tuple[str, torch.nn.Parameter]]
_LIKE_THE_PARAMETER = ("exp_avg", "exp_avg_sq", "momentum_buffer", "square_avg", "sum")
"""Optimizer state that has its parameter's shape."""


def build_optimizer(model: torch.nn.Module, settings: dict[str, Any], state: Any, notes: list[str], folder: Path) -> torch.optim.Optimizer:
    """The optimizer that `optim` names over Trainer's groups, with its saved state on the parameters that it belongs to.

    Parameters that the saved state leaves out are frozen, as they were in the run.

    Raises UnreadableInput when the saved state belongs to another set of parameters.
    """
    decay = float(settings.get("weight_decay") or 0.0)
    lr = float(settings.get("learning_rate") or 5e-5)
    betas = (float(settings.get("adam_beta1") or 0.9), float(settings.get("adam_beta2") or 0.999))
    eps = float(settings.get("adam_epsilon") or 1e-8)
    value = settings.get("optim")
    name = str((value.get("value") if isinstance(value, dict) else value) or "adamw_torch").rpartition(".")[2].lower()
    groups = _groups(model, decay, state, notes, folder)
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
        optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps)
        if not name.startswith("adamw_torch") and name not in ("adamw_hf", "adamw", "adamw_apex_fused"):
            usable = _like_adam(state)
            how = "with its saved moments" if usable else "which starts without its saved state"
            _note(notes, f"the optimizer {name} is replaced by AdamW, {how}")
            state = state if usable else None
    if state is not None:
        try:
            optimizer.load_state_dict(copy.deepcopy(state))
        except (ValueError, KeyError) as error:
            raise _unfit(folder, str(error)) from None
        for group in optimizer.param_groups:
            group["foreach"], group["fused"] = group.get("foreach"), None  # a state saved on CUDA may ask for kernels that are not here
    return optimizer


def _note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)


def _unfit(folder: Path, why: str) -> UnreadableInput:
    return UnreadableInput(
        f"{folder / 'optimizer.pt'}: does not fit the model: {why}", "The optimizer was built over other parameters; give a recipe (--recipe)."
    )


def _like_adam(state: Any) -> bool:
    entries = state.get("state") if isinstance(state, Mapping) else None
    return isinstance(entries, Mapping) and all(isinstance(e, Mapping) and {"exp_avg", "exp_avg_sq"} <= set(e) for e in entries.values())


# -- which parameter is which number


def _groups(model: torch.nn.Module, decay: float, state: Any, notes: list[str], folder: Path) -> list[dict[str, Any]]:
    """Parameter groups in the saved state's order, by the first of Trainer's ways to group that fits its sizes and shapes."""
    trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    saved = _saved_groups(state)
    ways = list(_ways(model, trainable))
    if saved is None:
        return [g for g in _with_decay(ways[0], decay) if g["params"]]
    for way in ways:
        if len(way) == len(saved) and all(_fits(group, shapes) for group, shapes in zip(way, saved, strict=True)):
            return _with_decay(way, decay)
    for way in ways:
        chosen = [_last_choice(group, shapes) for group, shapes in zip(way, saved, strict=False)]
        if len(way) == len(saved) and all(c is not None for c in chosen):
            kept = [c for c in chosen if c is not None]
            _freeze_others(trainable, kept, notes, sure=all(_only_choice(group, s) for group, s in zip(way, saved, strict=True)))
            return _with_decay(kept, decay)
    counts = " + ".join(str(len(shapes)) for shapes in saved)
    raise _unfit(folder, f"it is about {counts} parameters, and the model has {len(trainable)}, or their shapes differ")


def _with_decay(groups: Sequence[Named], decay: float) -> list[dict[str, Any]]:
    """Weight decay for the first group only, as Trainer sets it."""
    return [{"params": [p for _, p in group], "weight_decay": decay if i == 0 else 0.0} for i, group in enumerate(groups)]


def _ways(model: torch.nn.Module, trainable: Named) -> Iterator[list[Named]]:
    """The ways in which Trainer's versions group parameters: by name patterns, by classes of norms before 4.50, all in one."""
    from transformers.trainer_pt_utils import get_parameter_names

    patterns = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
    with suppress(TypeError):  # before transformers 4.50 there were no name patterns
        yield _split(trainable, set(get_parameter_names(model, [torch.nn.LayerNorm], patterns)))
    norms = [type(m) for m in model.modules() if type(m).__name__.endswith(("LayerNorm", "RMSNorm"))]
    for kinds in ([torch.nn.LayerNorm], list(dict.fromkeys([torch.nn.LayerNorm, *norms]))):
        yield _split(trainable, {n for n in get_parameter_names(model, kinds) if "bias" not in n})
    yield [trainable]


def _split(trainable: Named, decayed: set[str]) -> list[Named]:
    return [[(n, p) for n, p in trainable if n in decayed], [(n, p) for n, p in trainable if n not in decayed]]


def _saved_groups(state: Any) -> list[list[tuple[int, ...] | None]] | None:
    """For each saved group the shapes of its parameters, None where the state does not tell; None without groups."""
    groups = state.get("param_groups") if isinstance(state, Mapping) else None
    if not isinstance(groups, list):
        return None
    entries = state.get("state")
    entries = entries if isinstance(entries, Mapping) else {}
    return [[_shape(entries.get(number)) for number in group.get("params") or ()] for group in groups if isinstance(group, Mapping)]


def _shape(entry: Any) -> tuple[int, ...] | None:
    if isinstance(entry, Mapping):
        for name in _LIKE_THE_PARAMETER:
            if isinstance(entry.get(name), torch.Tensor):
                return tuple(entry[name].shape)
    return None


def _fits(group: Named, shapes: Sequence[tuple[int, ...] | None]) -> bool:
    return len(group) == len(shapes) and all(_same(p, shape) for (_, p), shape in zip(group, shapes, strict=True))


def _same(parameter: torch.nn.Parameter, shape: tuple[int, ...] | None) -> bool:
    return shape is None or tuple(parameter.shape) == shape


def _last_choice(group: Named, shapes: Sequence[tuple[int, ...] | None]) -> Named | None:
    """The last parameters of a group that the saved shapes can belong to, in order; None where there are none. Scripts freeze the first layers."""
    found = _greedy(group[::-1], shapes[::-1]) if None not in shapes else None
    return found[::-1] if found is not None else None


def _only_choice(group: Named, shapes: Sequence[tuple[int, ...] | None]) -> bool:
    """Whether the saved shapes can belong to one choice of parameters only."""
    first, last = _greedy(group, shapes), _last_choice(group, shapes)
    return first is not None and last is not None and [n for n, _ in first] == [n for n, _ in last]


def _greedy(group: Named, shapes: Sequence[tuple[int, ...] | None]) -> Named | None:
    found: Named = []
    remaining = iter(group)
    for shape in shapes:
        match = next(((n, p) for n, p in remaining if _same(p, shape)), None)
        if match is None:
            return None
        found.append(match)
    return found


def _freeze_others(trainable: Named, kept: Sequence[Named], notes: list[str], *, sure: bool) -> None:
    names = {n for group in kept for n, _ in group}
    frozen = [n for n, _ in trainable if n not in names]
    for name, parameter in trainable:
        parameter.requires_grad_(name in names)
    count = f"{len(frozen)} parameters are" if len(frozen) > 1 else "1 parameter is"
    doubt = "" if sure else "; which ones the state leaves open: those of the first layers are taken"
    _note(notes, f"{count} frozen, as the optimizer's state shows (first: {frozen[0]}){doubt}")


# -- the schedule


def build_scheduler(optimizer: torch.optim.Optimizer, settings: dict[str, Any], state: Any, notes: list[str]) -> Any:
    """The scheduler that `lr_scheduler_type` names, with its saved state; None where it cannot be rebuilt, which is noted."""
    from transformers import get_scheduler

    total = int(settings.get("max_steps") or 0)
    kind = settings.get("lr_scheduler_type") or "linear"
    name = str(kind.get("value") if isinstance(kind, dict) else kind)
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    if total <= 0 and name != "constant":
        return None
    specific = settings.get("lr_scheduler_kwargs")
    try:
        scheduler = get_scheduler(
            name,
            optimizer,
            num_warmup_steps=_warmup(settings, total),
            num_training_steps=total,
            scheduler_specific_kwargs=specific if isinstance(specific, dict) else None,
        )
    except (ValueError, TypeError):
        _note(notes, f"the schedule {name} cannot be rebuilt: the learning rate stays as it is in the checkpoint")
        return None
    if isinstance(state, dict):
        scheduler.load_state_dict({k: v for k, v in state.items() if k != "lr_lambdas"} | {"lr_lambdas": [None] * len(optimizer.param_groups)})
    for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr(), strict=False):
        group["lr"] = rate
    return scheduler


def _warmup(settings: Mapping[str, Any], total: int) -> int:
    """Warm-up steps; a number below 1 is a share of all steps, as is `warmup_ratio`."""
    given = float(settings.get("warmup_steps") or 0)
    share = given if 0 < given < 1 else float(settings.get("warmup_ratio") or 0.0)
    return int(given) if given >= 1 else math.ceil(share * total)
