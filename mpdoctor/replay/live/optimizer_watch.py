"""What the optimizers receive: gradient norms, gradients kept over steps, gradients that are missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from mpdoctor.replay.live.finiteness import FINITE, own_look, readable, status, sum_of_squares

_NOTHING: Mapping[int, float] = {}


class OptimizerWatch:
    """Follows all optimizers of a run. `names` maps a parameter's id to its dotted name in the model."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.optimizers: list[Any] = []
        """Optimizers that have stepped, and the run's main one."""
        self.made: list[Any] = []
        """Optimizers that were built or used by the run, whether they have stepped yet or not."""
        self.grad_norm: float | None = None
        """Norm of the gradients that the first optimizer of this step received."""
        self.nonfinite: list[str] = []
        self.finite: list[torch.Tensor] = []
        """Gradients that were finite when an optimizer of this step received them."""
        self.stale: list[str] = []
        self.uncleared = False
        self._stepped_on: dict[int, dict[int, torch.Tensor]] = {}
        self._dirty: set[int] = set()
        self._bad_before = False

    def follow(self, model: torch.nn.Module, optimizer: Any) -> None:
        """Know the model's parameter names and the run's main optimizer."""
        self.names = {id(p): n for n, p in model.named_parameters()}
        if optimizer not in self.optimizers:
            self.optimizers.append(optimizer)

    def know(self, optimizer: Any) -> None:
        """An optimizer was built, or something was asked of it."""
        if not any(known is optimizer for known in self.made):
            self.made.append(optimizer)

    def new_step(self) -> None:
        """Forget the last step's gradients."""
        self._bad_before = bool(self.nonfinite or self.stale)
        self.grad_norm, self.nonfinite, self.finite, self.stale, self.uncleared = None, [], [], [], False

    def parameters_of(self, optimizer: Any) -> Iterator[tuple[str, torch.Tensor]]:
        """The optimizer's parameters with their names."""
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                yield self.names.get(id(parameter)) or f"group{g}[{i}]", parameter

    def owner_of(self, parameters: Sequence[Any]) -> Any:
        """The optimizer that holds the first of these parameters."""
        wanted = {id(p) for p in parameters[:1]}
        for optimizer in (*self.optimizers, *self.made):
            if any(id(p) in wanted for _, p in self.parameters_of(optimizer)):
                return optimizer
        return None

    @own_look
    def look_at_grads(self, optimizer: Any, squares: Mapping[int, float] = _NOTHING) -> None:
        """Norm of the optimizer's gradients; names of those that are not finite. `squares` as for `norm_of`."""
        if optimizer not in self.optimizers:
            self.optimizers.append(optimizer)
        named = [(n, p.grad) for n, p in self.parameters_of(optimizer) if p.grad is not None]
        norm = norm_of([g for _, g in named], squares)
        if not math.isfinite(norm):
            self.nonfinite = [n for n, g in named if status(g) != FINITE]
        else:
            self.finite += [g for _, g in named]
        if self.grad_norm is None or not math.isfinite(norm):
            self.grad_norm = norm

    @own_look
    def before_backward(self) -> None:
        """Look for gradients of an earlier step that are still there."""
        for optimizer in self.optimizers:
            kept = self._stepped_on.get(id(optimizer))
            if kept and id(optimizer) not in self._dirty:
                # One gradient that is not zero is enough; a loop that clears by hand zeroes them all.
                still = [g for _, p in self.parameters_of(optimizer) if (g := p.grad) is not None and kept.get(id(p)) is g]
                if any(bool(torch.count_nonzero(g.coalesce().values() if g.is_sparse else g)) for g in still[:4]):
                    self._dirty.add(id(optimizer))
            if self._bad_before and not self.stale:
                self.stale = [n for n, p in self.parameters_of(optimizer) if p.grad is not None and status(p.grad) != FINITE]

    def cleared(self, optimizer: Any) -> None:
        """`zero_grad` was called on an optimizer, or on a module (None)."""
        if optimizer is None:
            self._dirty.clear()
            self._stepped_on.clear()
        else:
            self._dirty.discard(id(optimizer))
            self._stepped_on.pop(id(optimizer), None)

    def before_step(self, optimizer: Any) -> None:
        """Note whether the optimizer steps on gradients that its last step had used already."""
        self.uncleared = self.uncleared or id(optimizer) in self._dirty
        self._dirty.discard(id(optimizer))

    @own_look
    def after_step(self, optimizer: Any) -> None:
        """Remember the gradients that this step used."""
        self._stepped_on[id(optimizer)] = {id(p): p.grad for _, p in self.parameters_of(optimizer) if p.grad is not None}

    @own_look
    def outside(self, parameters: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
        """Trainable parameters of the model with a gradient that is not zero, in no optimizer that was seen."""
        held = {id(p) for optimizer in self.optimizers for _, p in self.parameters_of(optimizer)}
        left = [(n, p.grad) for n, p in parameters.items() if id(p) not in held and p.requires_grad and p.grad is not None]
        return tuple(n for n, g in left if norm_of([g]) > 0)

    @own_look
    def missing(self, optimizer: Any) -> list[str]:
        """Trainable parameters without a gradient."""
        return [n for n, p in self.parameters_of(optimizer) if p.requires_grad and p.grad is None]


@own_look
@torch.no_grad()
def norm_of(tensors: Sequence[torch.Tensor], squares: Mapping[int, float] = _NOTHING) -> float:
    """L2 norm of all values, accumulated in fp32 (fp64 for fp64); 0.0 for nothing.

    `squares` holds sums of squares that are known already, by address of the memory that a tensor fills.
    """
    sums: list[float] = []
    low: list[torch.Tensor] = []
    wide: list[torch.Tensor] = []
    for tensor in tensors:
        flat = readable(tensor)
        if flat is None:
            continue
        known = squares.get(tensor.untyped_storage().data_ptr()) if squares and tensor.layout is torch.strided else None
        if known is None or tensor.untyped_storage().nbytes() != tensor.nbytes:
            known = sum_of_squares(flat)
        if known is not None:
            sums.append(known)
        else:
            (wide if flat.dtype is torch.float64 else low).append(flat)
    norms = [*torch._foreach_norm(low, 2, dtype=torch.float32)] if low else []
    norms += [n.float() for n in torch._foreach_norm(wide, 2)] if wide else []
    if norms:
        by_device = [n.cpu() if n.device.type != "cpu" else n for n in norms]
        sums.append(float(torch.stack(by_device).double().square().sum()))
    total = math.sqrt(math.fsum(sums)) if all(map(math.isfinite, sums)) else sum(sums)
    if math.isinf(total) and all(status(t) == FINITE for t in tensors):
        return 3.4028234663852886e38  # the squares overflowed, not the values
    return total
