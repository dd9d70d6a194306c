"""The op-level tracer: reads what every op makes, and keeps who made each non-finite value.

A `TorchDispatchMode` sees the forward pass, loss code, the backward pass and (on request) the optimizer below
autograd, so functional code, custom autograd functions, recomputed regions and in-place ops look alike. Each fresh
output and each mutated argument is read once. The provenance of non-finite values is kept by storage, so that a bad
loss can be walked back to the op that made the first bad value of its chain (`origin.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._traceback import CapturedTraceback

from mpdoctor.core.location import Phase
from mpdoctor.replay.live.before_op import Before, look_before, statuses_of
from mpdoctor.replay.live.events import Call, EndTensor, Event, External, ForwardSite, Observations
from mpdoctor.replay.live.finiteness import (
    FINITE,
    NAN,
    bad_mask,
    dtype_name,
    first_bad_index,
    floating_in,
    own_look,
    readable,
    status,
    status_of,
    storage_key,
    sum_of_squares,
    tensors_in,
    versions,
)
from mpdoctor.replay.live.module_stack import ModuleStack
from mpdoctor.replay.live.op_plan import OpPlan, plan_of
from mpdoctor.replay.live.rows import named_tensors
from mpdoctor.replay.live.step_mode import StepMode
from mpdoctor.replay.live.usage_watch import UsageWatch

_LOW = (torch.float16, torch.bfloat16)
_WIDE = (torch.float32, torch.float64)
_KEPT_EVENTS = 64
"""Created values whose inputs are kept alive for `why.py`; the origin is among the first."""


class OpTracer(StepMode):
    """Traces one training step.

    Args:
        model: its parameters and buffers are recognised by storage, its modules by name.
        batch: its tensors are recognised by storage.
        optimizer_ops: whether the ops of `optimizer.step` are read too.
        usage: also record FLOPs by dtype, which parameters the forward pass reads, 16-bit accumulations.
    """

    def __init__(self, model: torch.nn.Module, batch: Any, *, optimizer_ops: bool = False, usage: bool = True) -> None:
        super().__init__(optimizer_ops=optimizer_ops)
        self.stack = ModuleStack(model)
        self.phase: Phase | None = None
        """Set while a scaler unscales, gradients are clipped, or an optimizer steps."""
        self.optimizer_name: str | None = None
        self.backward_done = False
        self.backward_passes = 0
        self.events: list[Event] = []
        self.ends: list[EndTensor] = []
        self.seen = Observations()
        self.raised: Event | None = None
        """The op that raised, if one did."""
        self._provenance: dict[int, Event | External] = {}
        self._finite: set[int] = set()
        """Memory that holds only finite values, as far as the traced ops wrote it."""
        self.squares: dict[int, float] = {}
        """Sum of squares of memory that one op of the backward pass filled, by address: a gradient need not be read again for its norm."""
        self._carried: set[tuple[int, Phase]] = set()
        self._known: dict[int, tuple[str, str, torch.Tensor]] = {}
        self._forward_sites: dict[int, ForwardSite] = {}
        self._usage = UsageWatch(self.seen, self._known) if usage else None
        self._parameters = list(model.named_parameters())
        for name, parameter in self._parameters:
            self._know("parameter", name, parameter)
            if parameter.grad is not None:
                self._know("gradient", name, parameter.grad)
        for name, buffer in model.named_buffers():
            self._know("buffer", name, buffer)
        for name, tensor in named_tensors(batch):
            self._know("input", name, tensor)

    def _know(self, kind: str, name: str, tensor: torch.Tensor) -> None:
        self._known.setdefault(storage_key(tensor), (kind, name, tensor))

    def after_backward(self) -> None:
        """A backward pass is over: there are gradients to know by name."""
        self.backward_done = True
        self.backward_passes += 1
        self._know_gradients()

    def gradients_used(self) -> None:
        """An optimizer stepped, or the gradients were cleared."""
        if self._usage is not None:
            self._usage.gradients_used()

    # -- phases, set by the interception of scaler, clipping and optimizer

    @contextmanager
    def in_phase(self, phase: Phase, optimizer: str | None = None) -> Iterator[None]:
        """Ops until the end of the block belong to `phase`; gradients are known by their parameter's name."""
        outer = self.phase, self.optimizer_name
        if outer[0] is None:
            self._know_gradients()
        self.phase, self.optimizer_name = phase, optimizer
        try:
            yield
        finally:
            self.phase, self.optimizer_name = outer
            self._finite.clear()
            self.squares.clear()  # an optimizer writes where the tracer does not look

    @own_look
    def _know_gradients(self) -> None:
        for name, parameter in self._parameters:
            if parameter.grad is not None:
                self._known[storage_key(parameter.grad)] = ("gradient", name, parameter.grad)

    @own_look
    def end_of(self, kind: str, name: str, tensor: torch.Tensor) -> None:
        """Look at a tensor that must be finite; remember it, and what made it bad, if it is not."""
        bits = status(tensor)
        if bits != FINITE:
            source = self._provenance.get(storage_key(tensor)) or self._external(tensor, bits)
            self.ends.append(EndTensor(kind, name, bits, source))

    def overflowed(self, tensor: torch.Tensor) -> bool:
        """Whether an op of this step made infinity of finite values and left it in the tensor."""
        made = self._provenance.get(storage_key(tensor))
        return isinstance(made, Event) and made.created and not made.deliberate

    # -- the dispatch

    def __enter__(self) -> OpTracer:
        self.stack.attach()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self.stack.detach()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        self.seen.ops += 1
        if self.phase is Phase.OPTIMIZER and not self.optimizer_ops:
            return func(*args, **kwargs)
        plan = plan_of(func)
        node = torch._C._current_autograd_node()
        before = look_before(plan, args, kwargs, self._finite) if plan.written and plan.read else None
        if before is not None and self._usage is not None and self.phase is not Phase.OPTIMIZER:
            with torch._C.DisableTorchFunction():
                self._usage.addition(plan, args, kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception:
            if self.raised is None:
                tensor = args[0] if args and isinstance(args[0], torch.Tensor) else None
                self.raised = self._event(plan.label, node, FINITE, tensor, [], created=False)
            raise
        with torch._C.DisableTorchFunction():
            if node is None or torch.is_grad_enabled():
                self._remember_forward_site(plan.label)
            if plan.uninitialised:
                self._not_finite(out)
            elif plan.read:
                self._look_after(plan, func, node, args, kwargs, out, before)
        return out

    def _look_after(self, plan: OpPlan, func: Any, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, before: Before | None) -> None:
        """Read what the op made; record what is not finite."""
        kept = before.args if before is not None else None
        phase = self._phase_name(node)
        if self._usage is not None:
            self._note_usage(self._usage, plan, func, node, args, kwargs, out, kept)
        made = [out] if isinstance(out, torch.Tensor) else floating_in(out)
        results = made if before is None else before.written + _fresh(made, args, kwargs)
        if (
            plan.draws
            or (before is not None and before.unscaled_well(args))
            or (phase is Phase.BACKWARD and plan.copies and self._copies_finite(args, out))
        ):
            for tensor in results:
                self._finite_now(tensor)
            return
        bad: list[tuple[torch.Tensor, int]] = []
        site = self._forward_sites.get(node._sequence_nr()) if phase is Phase.BACKWARD else None
        module = site.module if site is not None else self.stack.current() or ""
        for tensor in results:
            flat = readable(tensor)
            if flat is None:
                continue
            if phase is Phase.BACKWARD and flat.dtype in _WIDE:
                # How large these get matters to no format. A sum takes half the time, and none that holds NaN or infinity is finite.
                squares = sum_of_squares(flat)
                if math.isfinite(flat.sum().item() if squares is None else squares):
                    self._finite_now(tensor, squares)
                    continue
            smallest, largest = torch.aminmax(flat)
            low, high = smallest.item(), largest.item()
            key = (module, phase, dtype_name(tensor.dtype))
            if -math.inf < low and high < math.inf:
                self._finite_now(tensor)
                magnitude = max(-low, high)
                if magnitude > self.seen.amax.get(key, -1.0):
                    self.seen.amax[key] = magnitude
            else:
                bad.append((tensor, status_of(low, high)))
                self._not_finite(tensor)
                self.seen.nonfinite[key] = self.seen.nonfinite.get(key, 0) + 1
        if bad:
            inputs, statuses = before.known(bad) if before is not None else statuses_of(floating_in(args) + floating_in(kwargs))
            rerunnable = before is None or kept is not None
            given = args if kept is None else kept
            written = {id(args[i]): i for i, _ in plan.written if i < len(args)}
            self._record(func, plan.label, node, given, kwargs, inputs, statuses, bad, rerunnable=rerunnable, written=written)

    def _not_finite(self, tensor: torch.Tensor) -> None:
        """Forget what was known of a tensor's memory."""
        key = storage_key(tensor)
        self._finite.discard(key)
        self.squares.pop(key, None)

    def _finite_now(self, tensor: torch.Tensor, squares: float | None = None) -> None:
        """Note that all values of a tensor are finite. One that is a part of its memory says nothing about the rest."""
        if tensor.layout is not torch.strided:
            self._provenance.pop(storage_key(tensor), None)
            return
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        self.squares.pop(key, None)
        if storage.nbytes() == tensor.nbytes:
            self._finite.add(key)
            self._provenance.pop(key, None)
            if squares is not None:
                self.squares[key] = squares

    def _copies_finite(self, args: tuple[Any, ...], copy: torch.Tensor) -> bool:
        """Whether a copy holds only values that were finite when they were made, in a format that holds them too."""
        sources = floating_in(args)
        return bool(sources) and all(
            (source.dtype is copy.dtype or (source.dtype in _LOW and copy.dtype in _WIDE))
            and source.layout is torch.strided
            and storage_key(source) in self._finite
            for source in sources
        )

    def _note_usage(
        self, usage: UsageWatch, plan: OpPlan, func: Any, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, kept: Any
    ) -> None:
        if plan.formula is not None:
            usage.flops(plan.formula, func, args, kwargs, out)
        if node is None and self.phase is None:
            usage.reads(args)
        if plan.takes_eps and (eps := usage.vanished_eps(args)) is not None:
            self.seen.vanished_eps.append((eps, self._event(plan.label, node, FINITE, args[0], [], created=False)))
        if plan.scales and self.backward_passes and self._by_hand(node):
            usage.rescaling(args, self.backward_passes)
        if plan.updates and kept is not None and self._by_hand(node):
            usage.absorbed(plan, func, args, kept, kwargs)
        if plan.replaces_nan:
            scalar_loss = self._phase_name(node) is Phase.LOSS and args[0].numel() == 1
            if (scalar_loss or (self.backward_done and node is None)) and status(args[0]) & NAN:
                self.seen.replaced_nan.append(self._event(plan.label, node, NAN, args[0], [], created=False))

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
        written: dict[int, int],
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
                    event.call = Call(func, args, kwargs, tensor, versions(args), written.get(id(tensor)))
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
            optimizer_ops=self.optimizer_ops,
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
        event.sequence = node._sequence_nr() if node is not None and phase is Phase.BACKWARD else torch.autograd._get_sequence_nr() - 1  # type: ignore[attr-defined]
        if phase is Phase.BACKWARD and node is not None:
            event.node = node.name()
            site = self._forward_sites.get(node._sequence_nr())
            if site is not None:
                event.forward_op, event.module = site.op, site.module
                if not isinstance(node, torch.autograd.function.BackwardCFunction):  # which has a line of its own
                    event.stack = site.stack
        return event


def _fresh(made: list[torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Results of a mutating op that are not the mutated arguments themselves."""
    given = {id(t) for t in tensors_in(args)} | {id(t) for t in tensors_in(kwargs)}
    return [t for t in made if id(t) not in given]


def _writes_infinity(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    scalars = [a for a in (*args, *kwargs.values()) if isinstance(a, float)]
    return any(a != a or a in (float("inf"), float("-inf")) for a in scalars)
