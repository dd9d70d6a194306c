"""What an op that writes in place found before it wrote: the tracer cannot read it afterwards."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

from mpdoctor.replay.live.finiteness import FINITE, floating_in, own_look, status, storage_key
from mpdoctor.replay.live.op_plan import OpPlan

_CLONED_NUMEL = 1 << 16
"""Inputs up to this size are copied first, so that the op can be run again."""


@dataclass(slots=True)
class Before:
    """What an in-place op found: the tensors that it modifies, its inputs and their statuses (None: to be read when needed)."""

    written: list[torch.Tensor]
    inputs: list[torch.Tensor]
    statuses: list[int | None]
    args: tuple[Any, ...] | None = None
    """A copy of its arguments, when they were small and finite."""
    found_inf: torch.Tensor | None = None
    """Where the GradScaler's check notes that a gradient was bad before it was unscaled."""

    def unscaled_well(self, args: tuple[Any, ...]) -> bool:
        """Whether the GradScaler's check found all gradients finite, and dividing by the scale left them so."""
        return self.found_inf is not None and self.found_inf.item() == 0.0 and 0.0 <= args[2].item() <= 1.0

    def known(self, bad: list[tuple[torch.Tensor, int]]) -> tuple[list[torch.Tensor], list[int]]:
        """The inputs and all their statuses, looked up after the op made bad values."""
        if self.found_inf is not None:
            found = dict.fromkeys((id(t) for t in self.written), FINITE)
            if self.found_inf.item() > 0:  # dividing by the scale keeps NaN and infinity what they are
                found |= {id(t): bits for t, bits in bad}
            found[id(self.found_inf)] = FINITE
            return self.inputs, [found[id(t)] if id(t) in found else status(t) for t in self.inputs]
        return self.inputs, [status(t) if bits is None else bits for t, bits in zip(self.inputs, self.statuses, strict=True)]


@own_look
def look_before(plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any], finite: Collection[int]) -> Before:
    """Status of what the op is about to modify, and a copy of small inputs. Other inputs can still be read afterwards.

    `finite` holds the memory that is known to hold finite values only.
    """
    written = _written(plan, args, kwargs)
    inputs = floating_in(args) + floating_in(kwargs)
    before = Before(written, inputs, [None] * len(inputs))
    if sum(t.numel() for t in inputs) <= _CLONED_NUMEL:
        given = {id(t) for t in written} if plan.overwrites else ()
        before.statuses = [FINITE if id(t) in given else status(t) for t in inputs]
        if not any(before.statuses):
            before.args = _cloned(args)
    elif plan.unscales:
        before.found_inf = args[1]
    else:
        memory = {storage_key(t) for t in written}
        before.statuses = [_status_before(plan, t, finite) if storage_key(t) in memory else None for t in inputs]
    return before


def _status_before(plan: OpPlan, tensor: torch.Tensor, finite: Collection[int]) -> int:
    return FINITE if plan.overwrites or storage_key(tensor) in finite else status(tensor)


def statuses_of(tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[int]]:
    """The tensors and their statuses now."""
    return tensors, [status(t) for t in tensors]


def _written(plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for position, name in plan.written:
        found += floating_in(args[position] if position < len(args) else kwargs.get(name))
    return found


def _cloned(args: Any) -> Any:
    if isinstance(args, torch.Tensor):
        return args.detach().clone()
    if isinstance(args, (tuple, list)):
        return type(args)(_cloned(a) for a in args)
    return args
