"""A session with one thing changed, as far as the change acts on what was built rather than on calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch.utils._pytree import tree_map

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.session import Session


def make_scaler(session: Session, changes: Changes) -> Any:
    """The GradScaler that the loop gets, with its saved state; None for a loop without one."""
    arguments = session.settings.scaler
    if arguments is None and changes.dynamic_scaling and session.step is None:
        arguments = {}
    if arguments is None:
        return None
    device = next((p.device.type for p in session.model.parameters()), "cpu")
    try:
        scaler = torch.amp.GradScaler(device, **arguments)
    except AssertionError as error:  # torch's own check of the factors
        raise UnreadableInput(f"the settings of the loss scaler are refused by torch: {error}", "Correct CONFIG in the recipe.") from None
    if session.scaler_state and not changes.dynamic_scaling and changes.scale is None:
        scaler.load_state_dict(session.scaler_state)
    return scaler


def apply_to_session(session: Session, changes: Changes) -> None:
    """Changes that act on the built session rather than on calls."""
    if changes.fresh_optimizer:
        session.optimizer.state.clear()
    if changes.compute_dtype is not None:
        low = changes.replaced_dtypes
        for tensor in (*session.model.parameters(), *session.model.buffers()):
            if tensor.dtype in low and tensor.dtype is not changes.compute_dtype:
                tensor.data = tensor.data.to(changes.compute_dtype)
        for state in session.optimizer.state.values():
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and value.dtype in low:
                    state[key] = value.to(changes.compute_dtype)
    if changes.finite_parameters:
        for tensor in (*session.model.parameters(), *session.model.buffers()):
            if tensor.is_floating_point():
                tensor.data = torch.nan_to_num(tensor.data, nan=0.0, posinf=0.0, neginf=0.0)
    parameters = dict(session.model.named_parameters())
    for name, index, value in changes.weights:
        parameters[name].data[index] = value
    for name in changes.fp32_modules:
        with suppress(AttributeError):
            _in_fp32(session.model.get_submodule(name))


def _in_fp32(module: torch.nn.Module) -> None:
    """Run one module's forward in fp32: autocast off, inputs and own weights widened."""
    inner = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        def widen(v: Any) -> Any:
            return v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v

        with (
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False) if torch.cuda.is_available() else torch.autocast("cpu", enabled=False),
        ):
            return inner(*tree_map(widen, args), **tree_map(widen, kwargs))

    if any(p.dtype in (torch.float16, torch.bfloat16) for p in module.parameters()):
        module.float()
    module.forward = forward
