"""The op-level tracer: reads what every op makes, and keeps who made each non-finite value.

A `TorchDispatchMode` sees the forward pass, loss code, the backward pass and (on request) the optimizer below
autograd, so functional code, custom autograd functions, recomputed regions and in-place ops look alike. Each fresh
output and each mutated argument is read once. The provenance of non-finite values is kept by storage, so that a bad
loss can be walked back to the op that made the first bad value of its chain (`origin.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map
from torch.utils._traceback import CapturedTraceback

from mpdoctor.core.location import Phase
from mpdoctor.replay.live.events import AbsorbedUpdate, Call, EndTensor, Event, External, ForwardSite, Observations, Shadow
from mpdoctor.replay.live.finiteness import (
    FINITE,
    NAN,
    bad_mask,
    dtype_name,
    extremes,
    first_bad_index,
    floating_in,
    status,
    status_of,
    storage_key,
    tensors_in,
    versions,
)
from mpdoctor.replay.live.module_stack import ModuleStack
from mpdoctor.replay.live.rows import named_tensors

_SKIPPED_OPS = ("empty", "new_empty", "resize", "_unsafe_view", "detach", "lift_fresh", "_local_scalar_dense", "_nested")
_NAN_REPLACING = ("nan_to_num", "nan_to_num_", "nansum")
_UPDATING = ("lerp_", "add_", "sub_", "addcmul_", "addcdiv_", "_foreach_lerp_", "_foreach_add_", "_foreach_sub_")
_LOW = (torch.float16, torch.bfloat16)
_KEPT_EVENTS = 64
"""Created values whose inputs are kept alive for `why.py`; the origin is among the first."""
_CLONED_NUMEL = 1 << 16
"""In-place ops: inputs up to this size are copied first, so that the op can be run again."""


@cache
def _plan(func: Any) -> tuple[int, tuple[int, ...], tuple[str, ...], str]:
    """How to treat an op: 0 pass, 1 reads fresh outputs, 2 also mutated arguments; which; and its short name."""
    name = func._schema.name.split("::")[-1]
    label = f"{func._schema.name.replace('::', '.')}"
    mutated, mutated_names = [], []
    for i, argument in enumerate(func._schema.arguments):
        written = argument.alias_info is not None and argument.alias_info.is_write
        # Older batch-norm ops update their statistics without saying so in the schema.
        if written or ("batch_norm" in name and "backward" not in name and argument.name in ("running_mean", "running_var")):
            mutated.append(i)
            mutated_names.append(argument.name)
    if any(name.startswith(skipped) for skipped in _SKIPPED_OPS):
        return 0, (), (), label
    if mutated:
        return 2, tuple(mutated), tuple(mutated_names), label
    returns = func._schema.returns
    view = bool(returns) and all(r.alias_info is not None for r in returns)
    return (0 if view else 1), (), (), label


class OpTracer(TorchDispatchMode):
    """Traces one training step.

    Args:
        model: its parameters and buffers are recognised by storage, its modules by name.
        batch: its tensors are recognised by storage.
        optimizer_ops: whether the ops of `optimizer.step` are read too. They are more than half of a step's
            bytes, and needed only when the optimizer made the bad value.
        usage: also record FLOPs by dtype, which parameters the forward pass reads, 16-bit accumulations.
    """

    def __init__(self, model: torch.nn.Module, batch: Any, *, optimizer_ops: bool = False, usage: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stack = ModuleStack(model)
        self.optimizer_ops = optimizer_ops
        self.usage = usage
        self.phase: Phase | None = None
        """Set while a scaler unscales, gradients are clipped, or an optimizer steps."""
        self.optimizer_name: str | None = None
        self.backward_done = False
        self.events: list[Event] = []
        self.ends: list[EndTensor] = []
        self.seen = Observations()
        self.raised: Event | None = None
        """The op that raised, if one did."""
        self._provenance: dict[int, Event | External] = {}
        self._carried: set[tuple[int, Phase]] = set()
        self._known: dict[int, tuple[str, str, torch.Tensor]] = {}
        self._forward_sites: dict[int, ForwardSite] = {}
        self._flop_formulas = _flop_formulas() if usage else {}
        for name, parameter in model.named_parameters():
            self._know("parameter", name, parameter)
            if parameter.grad is not None:
                self._know("gradient", name, parameter.grad)
        for name, buffer in model.named_buffers():
            self._know("buffer", name, buffer)
        for name, tensor in named_tensors(batch):
            self._know("input", name, tensor)
        self._model = model

    def _know(self, kind: str, name: str, tensor: torch.Tensor) -> None:
        self._known.setdefault(storage_key(tensor), (kind, name, tensor))

    # -- phases, set by the interception of scaler, clipping and optimizer

    @contextmanager
    def in_phase(self, phase: Phase, optimizer: str | None = None) -> Iterator[None]:
        """Ops until the end of the block belong to `phase`; gradients are known by their parameter's name."""
        outer = self.phase, self.optimizer_name
        if outer[0] is None:
            for name, parameter in self._model.named_parameters():
                if parameter.grad is not None:
                    self._known[storage_key(parameter.grad)] = ("gradient", name, parameter.grad)
        self.phase, self.optimizer_name = phase, optimizer
        try:
            yield
        finally:
            self.phase, self.optimizer_name = outer

    def end_of(self, kind: str, name: str, tensor: torch.Tensor) -> None:
        """Look at a tensor that must be finite; remember it, and what made it bad, if it is not."""
        with _disable_current_modes():  # this look is no op of the run
            bits = status(tensor)
            source = (self._provenance.get(storage_key(tensor)) or self._external(tensor, bits)) if bits != FINITE else None
        if bits != FINITE:
            self.ends.append(EndTensor(kind, name, bits, source))

    # -- the dispatch

    def __enter__(self) -> OpTracer:
        self.stack.attach()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)  # type: ignore[no-untyped-call]
        self.stack.detach()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if self.phase is Phase.OPTIMIZER and not self.optimizer_ops:
            self.seen.ops += 1
            return func(*args, **kwargs)
        mode, mutated, mutated_names, label = _plan(func)
        node = torch._C._current_autograd_node()
        before: list[int] = []
        inputs: list[torch.Tensor] = []
        kept: tuple[Any, ...] | None = None
        if mode == 2:
            inputs = floating_in(args) + floating_in(kwargs)
            before = [status(t) for t in inputs]
            if not any(before) and sum(t.numel() for t in inputs) <= _CLONED_NUMEL:
                kept = _cloned(args)
            if self.usage and self.phase is not Phase.OPTIMIZER:
                self._shadow_addition(label, args, kwargs, first=True)
        try:
            out = func(*args, **kwargs)
        except Exception:
            if self.raised is None:
                self.raised = self._event(label, node, FINITE, args[0] if args and isinstance(args[0], torch.Tensor) else None, [], created=False)
            raise
        self.seen.ops += 1
        if node is None or torch.is_grad_enabled():
            self._remember_forward_site(label)
        if mode == 0:
            return out
        if self.usage:
            self._observe_usage(func, label, node, args, kwargs, out)
        results = floating_in(out) if mode == 1 else self._mutated(mutated, mutated_names, args, kwargs) + _fresh(out, args, kwargs)
        bad: list[tuple[torch.Tensor, int]] = []
        where = (self.stack.current() or "", self._phase_name(node))
        for tensor in results:
            found = extremes(tensor)
            if found is None:
                continue
            bits = status_of(*found)
            key = (*where, dtype_name(tensor.dtype))
            if bits == FINITE:
                self._provenance.pop(storage_key(tensor), None)
                magnitude = max(-found[0], found[1])
                if magnitude > self.seen.amax.get(key, -1.0):
                    self.seen.amax[key] = magnitude
            else:
                bad.append((tensor, bits))
                self.seen.nonfinite[key] = self.seen.nonfinite.get(key, 0) + 1
        if self.usage and kept is not None and self._by_hand(node):
            self._note_absorbed(func, label, args, kept, kwargs)
        if self.usage and label.rpartition(".")[2] in _NAN_REPLACING:
            self._note_replaced_nan(label, node, args)
        if bad:
            if mode == 1:
                inputs = floating_in(args) + floating_in(kwargs)
                before = [status(t) for t in inputs]
            self._record(func, label, node, args if kept is None else kept, kwargs, inputs, before, bad, rerunnable=mode == 1 or kept is not None)
        return out

    def _by_hand(self, node: Any) -> bool:
        """Whether the op belongs to the loop's own code: in no module, no backward pass, no scaler and no optimizer."""
        return node is None and self.phase is None and self.stack.current() is None

    def _phase_name(self, node: Any) -> Phase:
        if self.phase is not None:
            return self.phase
        if node is not None and not torch.is_grad_enabled():
            return Phase.BACKWARD
        if self.stack.current() is not None:
            return Phase.FORWARD
        return Phase.UNSCALE if self.backward_done else Phase.LOSS

    def _remember_forward_site(self, label: str) -> None:
        number = torch.autograd._get_sequence_nr() - 1  # type: ignore[attr-defined]
        if number not in self._forward_sites:
            stack = CapturedTraceback.extract(cpp=False)
            self._forward_sites[number] = ForwardSite(label, self.stack.current() or "", stack)

    def _mutated(self, positions: tuple[int, ...], names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for position, name in zip(positions, names, strict=True):
            found += floating_in(args[position] if position < len(args) else kwargs.get(name))
        return found

    # -- non-finite values

    def _external(self, tensor: torch.Tensor, bits: int) -> External:
        kind, name, _ = self._known.get(storage_key(tensor), ("unknown", "", tensor))
        return External(kind, name, bits, dtype_name(tensor.dtype), first_bad_index(tensor), bad_mask(tensor))

    def _record(
        self,
        func: Any,
        label: str,
        node: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[torch.Tensor],
        before: list[int],
        bad: list[tuple[torch.Tensor, int]],
        *,
        rerunnable: bool,
    ) -> None:
        bad_inputs = [(t, bits) for t, bits in zip(inputs, before, strict=True) if bits != FINITE]
        deliberate = _writes_infinity(args, kwargs) or any(
            not bits & NAN and t.dim() == 0 and storage_key(t) not in self._known and storage_key(t) not in self._provenance for t, bits in bad_inputs
        )
        sources = [self._provenance.get(storage_key(t)) or self._external(t, bits) for t, bits in bad_inputs]
        nan_came_in = any(bits & NAN for _, bits in bad_inputs)
        for tensor, bits in bad:
            created = (bool(bits & NAN) and not nan_came_in) or (not bits & NAN and not bad_inputs)
            if created:
                event = self._event(label, node, bits, tensor, sources, created=True)
                event.deliberate = deliberate and not bits & NAN
                if rerunnable and len(self.events) < _KEPT_EVENTS:
                    event.call = Call(func, args, kwargs, tensor, versions(args))
                self.events.append(event)
                self._provenance[storage_key(tensor)] = event
                continue
            source = next((s for s in sources if s.status & NAN), sources[0]) if bits & NAN else sources[0]
            phase = self._phase_name(node)
            if isinstance(source, External) or (source.phase is not phase and (source.n, phase) not in self._carried):
                event = self._event(label, node, bits, tensor, [source], created=False)
                if isinstance(source, Event):
                    self._carried.add((source.n, phase))
                self.events.append(event)
                self._provenance[storage_key(tensor)] = event
            else:
                self._provenance[storage_key(tensor)] = source

    def _event(self, label: str, node: Any, bits: int, tensor: torch.Tensor | None, sources: list[Event | External], *, created: bool) -> Event:
        phase = self._phase_name(node)
        known = self._known.get(storage_key(tensor)) if tensor is not None else None
        event = Event(
            n=self.seen.ops,
            op=label,
            phase=phase,
            module=self.stack.current() or "",
            status=bits,
            dtype=dtype_name(tensor.dtype) if tensor is not None else "",
            shape=tuple(tensor.shape) if tensor is not None else (),
            created=created,
            deliberate=False,
            sources=sources,
            target=(known[0], known[1]) if known is not None else None,
            stack=CapturedTraceback.extract(cpp=False),
            optimizer=self.optimizer_name,
        )
        if phase is Phase.BACKWARD and node is not None:
            event.node = node.name()
            site = self._forward_sites.get(node._sequence_nr())
            if site is not None:
                event.forward_op, event.module = site.op, site.module
                if not isinstance(node, torch.autograd.function.BackwardCFunction):  # which has a line of its own
                    event.stack = site.stack
        return event

    # -- the rest of what a step shows

    def _observe_usage(self, func: Any, label: str, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        formula = self._flop_formulas.get(func._overloadpacket)
        if formula is not None:
            dtype = next((dtype_name(t.dtype) for t in tensors_in(args) if t.is_floating_point()), "other")
            self.seen.flops[dtype] = self.seen.flops.get(dtype, 0.0) + formula(*args, **kwargs, out_val=out)
        if node is None and self.phase is None:
            for tensor in tensors_in(args):
                known = self._known.get(storage_key(tensor)) if tensor.layout is torch.strided else None
                if known is not None and known[0] == "parameter":
                    self.seen.read_parameters.add(known[1])
        short = label.rpartition(".")[2]
        if short in ("add", "add_", "clamp", "clamp_min", "maximum") and len(args) > 1:
            tensor, constant = args[0], args[1]
            low = isinstance(tensor, torch.Tensor) and tensor.dtype in _LOW
            if low and isinstance(constant, (int, float)) and constant and abs(constant) < 1e-3 and len(self.seen.vanished_eps) < 8:
                rounded = torch.tensor(float(constant), dtype=tensor.dtype).item()
                if rounded == 0.0:
                    self.seen.vanished_eps.append((float(constant), self._event(label, node, FINITE, tensor, [], created=False)))

    def _note_replaced_nan(self, label: str, node: Any, args: tuple[Any, ...]) -> None:
        source = args[0]
        scalar_loss = self._phase_name(node) is Phase.LOSS and source.numel() == 1
        if (scalar_loss or (self.backward_done and node is None)) and status(source) & NAN:
            self.seen.replaced_nan.append(self._event(label, node, NAN, source, [], created=False))

    def _note_absorbed(self, func: Any, label: str, args: tuple[Any, ...], before: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Does an in-place update by hand (a moving average, a parameter update) change a 16-bit tensor at all?"""
        if label.rpartition(".")[2] not in _UPDATING:
            return
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
                self.seen.absorbed[storage_key(target)] = AbsorbedUpdate(name, dtype_name(target.dtype), label.rpartition(".")[2], share, stack)

    def _shadow_addition(self, label: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, first: bool) -> None:
        """Keep the exact sum beside a small 16-bit tensor that is added to in place."""
        short = label.rpartition(".")[2]
        target = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if target is None or target.dtype not in _LOW or target.layout is not torch.strided or target.numel() > 1 << 20:
            return
        key = storage_key(target)
        if short != "add_" or len(args) < 2 or not isinstance(args[1], torch.Tensor):
            if short in ("zero_", "fill_", "copy_"):
                self.seen.shadows.pop(key, None)
            return
        shadow = self.seen.shadows.get(key)
        if shadow is None or shadow.exact.shape != target.shape:
            known = self._known.get(key)
            shadow = Shadow(target, target.double(), 0, known[1] if known else "", CapturedTraceback.extract(cpp=False))
            self.seen.shadows[key] = shadow
        shadow.exact += args[1].double() * float(kwargs.get("alpha", 1))
        shadow.additions += 1


def _fresh(out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Results of a mutating op that are not the mutated arguments themselves."""
    given = {id(t) for t in tensors_in(args)} | {id(t) for t in tensors_in(kwargs)}
    return [t for t in floating_in(out) if id(t) not in given]


def _cloned(args: Any) -> Any:
    if isinstance(args, torch.Tensor):
        return args.detach().clone()
    if isinstance(args, (tuple, list)):
        return type(args)(_cloned(a) for a in args)
    return args


def _writes_infinity(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    scalars = [a for a in (*args, *kwargs.values()) if isinstance(a, float)]
    return any(a != a or a in (float("inf"), float("-inf")) for a in scalars)


@cache
def _flop_formulas() -> dict[Any, Callable[..., float]]:
    from torch.utils.flop_counter import flop_registry

    return dict(flop_registry)
