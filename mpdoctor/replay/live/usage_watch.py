"""What a traced step shows beside non-finite values: FLOPs by dtype, parameters that are read, rounding that 16 bits do unseen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils._traceback import CapturedTraceback

from mpdoctor.replay.live.events import AbsorbedUpdate, Observations, Rescaling, Shadow
from mpdoctor.replay.live.finiteness import dtype_name, storage_key, tensors_in
from mpdoctor.replay.live.op_plan import OpPlan

_LOW = (torch.float16, torch.bfloat16)
_SHADOWED_NUMEL = 1 << 20
"""Largest 16-bit tensor beside which an exact sum is kept."""


class UsageWatch:
    """Notes into `seen`. `known` maps a storage to (kind, name, tensor) of the run's parameters, buffers and inputs."""

    def __init__(self, seen: Observations, known: Mapping[int, tuple[str, str, torch.Tensor]]) -> None:
        self._seen = seen
        self._known = known
        self._rescaled: dict[int, Rescaling] = {}
        self._flops: dict[Any, float] = {}

    def flops(self, formula: Callable[..., float], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Count a product's FLOPs. Layers repeat, so a call of the same shapes is counted without its formula."""
        shapes = (func, *(a.shape if isinstance(a, torch.Tensor) else str(a) for a in args), str(kwargs) if kwargs else "")
        count = self._flops.get(shapes)
        if count is None:
            count = self._flops[shapes] = float(formula(*args, **kwargs, out_val=out))
        dtype = next((dtype_name(t.dtype) for t in tensors_in(args) if t.is_floating_point()), "other")
        self._seen.flops[dtype] = self._seen.flops.get(dtype, 0.0) + count

    def reads(self, args: tuple[Any, ...]) -> None:
        """Note the parameters among a forward op's arguments."""
        for tensor in tensors_in(args):
            known = self._known.get(storage_key(tensor)) if tensor.layout is torch.strided else None
            if known is not None and known[0] == "parameter":
                self._seen.read_parameters.add(known[1])

    def vanished_eps(self, args: tuple[Any, ...]) -> float | None:
        """The small constant among an op's arguments that rounds to zero in the tensor's dtype, if there is one."""
        if len(args) < 2 or len(self._seen.vanished_eps) >= 8:
            return None
        tensor, constant = args[0], args[1]
        if not (isinstance(tensor, torch.Tensor) and tensor.dtype in _LOW and isinstance(constant, (int, float))):
            return None
        if not constant or abs(constant) >= 1e-3 or torch.tensor(float(constant), dtype=tensor.dtype).item() != 0.0:
            return None
        return float(constant)

    def absorbed(self, plan: OpPlan, func: Any, args: tuple[Any, ...], before: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Does an in-place update by hand (a moving average, a parameter update) change a 16-bit tensor at all?"""
        targets = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
        if not all(isinstance(t, torch.Tensor) and t.dtype in _LOW for t in targets):
            return
        exact = tree_map(lambda v: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, before)
        func(*exact, **kwargs)
        wanted = exact[0] if isinstance(exact[0], (list, tuple)) else [exact[0]]
        old = before[0] if isinstance(before[0], (list, tuple)) else [before[0]]
        for target, meant, was in zip(targets, wanted, old, strict=True):
            moves = meant != was.double()
            total = int(moves.sum())
            if total:
                known = self._known.get(storage_key(target))
                share = int(((target == was) & moves).sum()) / total
                name = known[1] if known else f"a {dtype_name(target.dtype)} tensor of shape {tuple(target.shape)}"
                stack = CapturedTraceback.extract(cpp=False)
                self._seen.absorbed[storage_key(target)] = AbsorbedUpdate(name, dtype_name(target.dtype), plan.short, share, stack)

    def rescaling(self, args: tuple[Any, ...], backward_pass: int) -> None:
        """Note a gradient that the loop's own code multiplies in place, and after which backward pass."""
        factor = args[1] if len(args) > 1 else None
        if isinstance(factor, torch.Tensor):
            factor = factor.item() if factor.numel() == 1 else None
        if not isinstance(factor, (int, float)) or abs(factor) == 1:
            return
        for target in tensors_in(args[0]):
            key = storage_key(target)
            known = self._known.get(key)
            if known is None or known[0] != "gradient":
                continue
            noted = self._rescaled.setdefault(key, Rescaling(known[1], float(factor), set(), CapturedTraceback.extract(cpp=False)))
            noted.passes.add(backward_pass)
            most = self._seen.rescaled
            if len(noted.passes) > 1 and (most is None or len(noted.passes) > len(most.passes)):
                self._seen.rescaled = replace(noted, passes=set(noted.passes))

    def gradients_used(self) -> None:
        """An optimizer stepped, or the gradients were cleared."""
        self._rescaled.clear()

    def addition(self, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the exact sum beside a small 16-bit tensor that is about to be added to in place."""
        target = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if target is None or target.dtype not in _LOW or target.layout is not torch.strided or target.numel() > _SHADOWED_NUMEL:
            return
        key = storage_key(target)
        if plan.short != "add_" or len(args) < 2 or not isinstance(args[1], torch.Tensor):
            if plan.short in ("zero_", "fill_", "copy_"):
                self._seen.shadows.pop(key, None)
            return
        shadow = self._seen.shadows.get(key)
        if shadow is None or shadow.exact.shape != target.shape:
            known = self._known.get(key)
            shadow = Shadow(target, target.double(), 0, known[1] if known else "", CapturedTraceback.extract(cpp=False))
            self._seen.shadows[key] = shadow
        shadow.exact += args[1].double() * float(kwargs.get("alpha", 1))
        shadow.additions += 1
