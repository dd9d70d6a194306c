"""Numbers of the unchanged run that need a run of their own: underflow, lost updates, stale casts, a trace's statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from mpdoctor.core.location import Phase
from mpdoctor.core.trace import Absorbed, Accumulation, ModuleAmax, Rescaled, StepTrace, TensorStats
from mpdoctor.replay.live.backward_graph import cut_parameters
from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.events import Observations
from mpdoctor.replay.live.finiteness import dtype_name, extremes, own_look
from mpdoctor.replay.live.gradient_census import Census, census_by_module, census_of
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.origin import Origin, find_origin, site_of, source_line, swallowed, timeline
from mpdoctor.replay.live.rows import batch_size
from mpdoctor.replay.live.session import Session, SessionSource
from mpdoctor.replay.live.training_loop import Tracing, run

LOW = (torch.float16, torch.bfloat16)
_TELLING_SCALE = 16.0
"""Loss scale from which a gradient divided by it twice cannot be taken for a clipped one."""
_MIN_ADDITIONS = 8
"""A 16-bit tensor that is added to less often in a step is no accumulator."""


class TraceCollector:
    """Turns the tracers of one run into plain `StepTrace`s, and keeps the live origins for the experiments.

    Args:
        full: steps in which parameters and gradients are read one by one; None for every traced step. The others give their ops only.
    """

    def __init__(self, full: frozenset[int] | None = None) -> None:
        self._full = full
        self.traces: dict[int, StepTrace] = {}
        self.origins: dict[int, Origin] = {}
        self._before: dict[str, torch.Tensor] = {}
        self._grads: dict[str, tuple[torch.Tensor, float]] = {}
        self._updated: dict[str, torch.Tensor] = {}
        self._cut: dict[str, str] = {}
        self._divided_again: float | None = None

    def before(self, session: Session, step: int) -> None:
        """Copy the weights, to see which of them the step changes."""
        if not self._wants(step):
            return
        self._before = {n: p.detach().clone() for n, p in session.model.named_parameters()}
        self._grads, self._updated, self._cut, self._divided_again = {}, {}, {}, None

    def before_backward(self, session: Session, step: int, loss: torch.Tensor) -> None:
        """Which parameters this backward pass cannot reach with a gradient that is not zero."""
        if self._wants(step):
            self._cut |= cut_parameters(loss, {id(p): n for n, p in session.model.named_parameters()})

    @own_look
    def after_update(self, session: Session, step: int) -> None:
        """Remember the weights as the optimizer left them, and whether the gradients had lost the loss scale twice."""
        if self._wants(step):
            self._divided_again = self._divided_again or self._twice(session)
        if self._wants(step) and (session.after_step is not None or session.step is not None):
            self._updated = {n: p.detach().clone() for n, p in session.model.named_parameters()}

    def after_backward(self, session: Session, step: int, scale: float) -> None:
        """Remember which gradient elements were not zero when backward ended."""
        if not self._wants(step):
            return
        for name, parameter in session.model.named_parameters():
            if parameter.grad is not None:
                self._grads[name] = (parameter.grad.detach().clone(), scale)

    def done(self, tracer: OpTracer, session: Session, step: int) -> None:
        """Take a finished tracer apart."""
        batch = session.batches[step - session.first_step]
        origin = find_origin(tracer, batch_size(batch))
        if origin is not None:
            self.origins[step] = origin
        seen = tracer.seen
        tensors = tuple(self._stats(session)) if self._wants(step) else ()
        trainable = {n for n, p in session.model.named_parameters() if p.requires_grad}
        self.traces[step] = StepTrace(
            step=step,
            origin=origin.describe(step) if origin is not None else None,
            timeline=timeline(tracer, origin, step),
            tensors=tensors,
            modules=_magnitudes(seen, tensors, {name: scale for name, (_, scale) in self._grads.items()}),
            flops=dict(seen.flops),
            unused_parameters=tuple(sorted(trainable - seen.read_parameters)),
            accumulations=tuple(_accumulations(tracer)),
            vanished_eps=tuple((eps, site_of(event, step)) for eps, event in seen.vanished_eps),
            replaced_nan=tuple(site_of(event, step) for event in seen.replaced_nan),
            rounded_positions=tuple(rounded_positions(session.model)),
            rescaled=_rescaled(tracer),
            absorbed=tuple(Absorbed(name=a.name, dtype=a.dtype, op=a.op, share=a.share, source=source_line(a.stack)) for a in seen.absorbed.values()),
            swallowed=swallowed(tracer, step) if origin is None else None,
            cut_by=tuple(sorted(self._cut.items())),
            divided_again=self._divided_again,
            update_undone=self._undone(session) if self._wants(step) else None,
            ops=seen.ops,
        )

    def _twice(self, session: Session) -> float | None:
        """The loss scale, when what the optimizer got is the gradient divided by it twice."""
        for name, parameter in session.model.named_parameters():
            then, scale = self._grads.get(name, (None, 1.0))
            now = parameter.grad
            if then is None or now is None or scale < _TELLING_SCALE or now.shape != then.shape or now.layout is not torch.strided:
                continue
            before, after = float(then.double().norm()), float(now.detach().double().norm())
            if before > 0 and math.isfinite(before) and math.isfinite(after):
                return scale if abs(after * scale * scale / before - 1) < 1e-2 else None
        return None

    def _undone(self, session: Session) -> float | None:
        """Share of the optimizer's update that what came after it took back."""
        dot, square = 0.0, 0.0
        for name, parameter in session.model.named_parameters():
            old, new = self._before.get(name), self._updated.get(name)
            if old is None or new is None or not parameter.shape == old.shape == new.shape or parameter.is_complex():
                continue
            update = (new.double() - old.double()).flatten()
            dot += float(torch.dot(update, (parameter.detach().double() - old.double()).flatten()))
            square += float(torch.dot(update, update))
        return 1 - dot / square if square > 0 and math.isfinite(dot) and math.isfinite(square) else None

    def _wants(self, step: int) -> bool:
        """Whether parameters and gradients are read one by one in this step."""
        return self._full is None or step in self._full

    def _stats(self, session: Session) -> list[TensorStats]:
        found = []
        state = session.optimizer.state
        for name, parameter in session.model.named_parameters():
            low_high = extremes(parameter)
            grad, scale = self._grads.get(name, (parameter.grad, 1.0))
            moments = state.get(parameter, {}) if parameter in state else {}
            floating = {k: v for k, v in moments.items() if isinstance(v, torch.Tensor) and v.is_floating_point()}
            census = census_of([grad], scale) if grad is not None and grad.layout is torch.strided else None
            found.append(
                TensorStats(
                    name=name,
                    dtype=dtype_name(parameter.dtype),
                    numel=parameter.numel(),
                    amax=max(abs(v) for v in low_high) if low_high else 0.0,
                    grad_dtype=dtype_name(grad.dtype) if grad is not None else None,
                    grad_norm=census.norm if census else None,
                    grad_amax=census.amax if census else None,
                    grad_zero_share=census.zero_share if census else None,
                    update_amax=self._update(name, parameter),
                    changed_share=self._changed(name, parameter, grad),
                    moments={k: dtype_name(v.dtype) for k, v in floating.items() if v.numel() == parameter.numel() and v.dim()},
                    moment_zero_share=flushed_share(floating),
                    has_master=has_master(parameter, floating),
                )
            )
        return found

    def _update(self, name: str, parameter: torch.Tensor) -> float | None:
        old = self._before.get(name)
        if old is None or old.shape != parameter.shape or not parameter.numel() or parameter.is_complex():
            return None
        now = parameter.detach()
        low_high = extremes(now.float() - old.float() if now.dtype in LOW else now - old)
        return max(abs(v) for v in low_high) if low_high else None

    def _changed(self, name: str, parameter: torch.Tensor, grad: torch.Tensor | None) -> float | None:
        old = self._before.get(name)
        if old is None or grad is None or grad.layout is not torch.strided or old.shape != parameter.shape:
            return None
        moved = grad != 0
        total = int(moved.sum())
        return int(((parameter.detach() != old) & moved).sum()) / total if total else None


def _magnitudes(seen: Observations, tensors: Sequence[TensorStats], scales: Mapping[str, float]) -> tuple[ModuleAmax, ...]:
    """Largest magnitudes by module, phase and dtype.

    The tracer has none of wide results in backward; the gradients of parameters stand for them, with the loss scale that they carried.
    """
    amax = dict(seen.amax)
    for tensor in tensors:
        if tensor.grad_amax is not None and tensor.grad_dtype is not None and math.isfinite(tensor.grad_amax):
            key = (tensor.name.rpartition(".")[0], Phase.BACKWARD, tensor.grad_dtype)
            amax[key] = max(amax.get(key, 0.0), tensor.grad_amax * scales.get(tensor.name, 1.0))
    return tuple(
        ModuleAmax(module=m, phase=str(p), dtype=d, amax=amax.get((m, p, d), math.inf), nonfinite=seen.nonfinite.get((m, p, d), 0))
        for m, p, d in dict.fromkeys((*amax, *seen.nonfinite))
    )


def rounded_positions(model: torch.nn.Module) -> list[tuple[str, str, int, int]]:
    """16-bit buffers that count up and have lost numbers: (name, dtype, distinct values, values)."""
    found = []
    for name, buffer in model.named_buffers():
        if buffer.dtype not in LOW or buffer.numel() < 16:
            continue
        values = buffer.detach().double().flatten()
        counts_up = bool((values == values.round()).all()) and bool((values.diff() >= 0).all())
        distinct = int(values.unique().numel())
        # Counting up by one, the last number would be about the number of values.
        if counts_up and float(values[-1]) >= 0.9 * (values.numel() - 1) and distinct < 0.95 * values.numel():
            found.append((name, dtype_name(buffer.dtype), distinct, values.numel()))
    return found


def has_master(parameter: torch.Tensor, state: dict[str, torch.Tensor]) -> bool:
    """Whether the optimizer keeps a wider copy of a 16-bit weight (its rounding is the weight, up to one rounding)."""
    if parameter.dtype not in LOW:
        return False
    for value in state.values():
        if value.dtype in (torch.float32, torch.float64) and value.shape == parameter.shape:
            close = (value.to(parameter.dtype) == parameter.detach()).float().mean() if value.numel() else torch.tensor(0.0)
            if float(close) > 0.99:
                return True
    return False


def flushed_share(state: dict[str, torch.Tensor]) -> float | None:
    """Share of elements whose second moment is 0 although the first moment is not; None without such moments."""
    first, second = state.get("exp_avg"), state.get("exp_avg_sq")
    if first is None or second is None:
        first, second = _moments(state)
    if first is None or second is None or first.shape != second.shape:
        return None
    live = first != 0
    total = int(live.sum())
    return int(((second == 0) & live).sum()) / total if total else None


def _moments(state: dict[str, torch.Tensor]) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """First and second moment of an optimizer with names of its own: of two states of one shape, that with both signs, and that with none below 0."""
    wide = [v for v in state.values() if v.dim() and v.numel() > 1]
    if len(wide) != 2 or wide[0].shape != wide[1].shape:
        return None, None
    squares = [v for v in wide if not bool((v < 0).any())]
    signed = [v for v in wide if bool((v < 0).any())]
    return (signed[0], squares[0]) if len(squares) == 1 and len(signed) == 1 else (None, None)


def loaded_moments_flushed(session: Session) -> tuple[float, str] | None:
    """As `flushed_share`, over the whole optimizer state as it was loaded, before the first step; and the state's dtype."""
    states = [{k: v for k, v in s.items() if isinstance(v, torch.Tensor)} for s in session.optimizer.state.values()]
    known = [(share, dtype_name(s["exp_avg_sq"].dtype)) for s in states if (share := flushed_share(s)) is not None]
    return (sum(share for share, _ in known) / len(known), known[0][1]) if known else None


def _accumulations(tracer: OpTracer) -> list[Accumulation]:
    found = []
    for shadow in tracer.seen.shadows.values():
        if shadow.additions < _MIN_ADDITIONS or shadow.exact.shape != shadow.tensor.shape:
            continue
        size = float(shadow.exact.norm())
        error = float((shadow.tensor.double() - shadow.exact).norm())
        if size > 0 and math.isfinite(error):
            found.append(
                Accumulation(
                    name=shadow.name or f"a {dtype_name(shadow.tensor.dtype)} tensor of shape {tuple(shadow.tensor.shape)}",
                    dtype=dtype_name(shadow.tensor.dtype),
                    additions=shadow.additions,
                    relative_error=error / size,
                    source=source_line(shadow.stack),
                )
            )
    return found


def _rescaled(tracer: OpTracer) -> Rescaled | None:
    found = tracer.seen.rescaled
    return Rescaled(name=found.name, factor=found.factor, passes=len(found.passes), source=source_line(found.stack)) if found is not None else None


def gradients_at(source: SessionSource, step: int, changes: Changes, deadline: float | None) -> Census | None:
    """Census of the true gradients of a step's parameters under `changes`; None when no backward pass ran."""
    found: list[Census] = []

    def after_backward(session: Session, _step: int, scale: float) -> None:
        found.append(census_by_module([(name, p.grad) for name, p in session.model.named_parameters() if p.grad is not None], scale))

    tracing = Tracing(frozenset([step]), lambda *_: None, after_backward=after_backward, ops=False)
    run(source, changes=changes, until=step, tracing=tracing, deadline=deadline)
    return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class UpdateLoss:
    """How much of their updates 16-bit weights lose.

    Attributes:
        kept: share of the intended update that they took over the first steps, projected on the intended one. 1.0: they moved as
            fp32 masters would; 0.0: nothing was taken.
        rate_factor: by how much the learning rate would have to grow for half of the elements to take a step's update.
    """

    kept: float
    rate_factor: float


def update_loss(source: SessionSource, last: int, deadline: float | None) -> UpdateLoss | None:
    """Compare the run with one on fp32 masters over its first steps. None where no weight is stored in 16 bits, or nothing is to move."""
    start = run(source, until=-1, deadline=deadline).session
    plain = run(source, until=last, deadline=deadline)
    wide = run(source, changes=Changes(master_weights=True), until=last, deadline=deadline)
    dot, square = 0.0, 0.0
    needed: list[torch.Tensor] = []
    steps = max(1, sum(s.took_a_step for s in wide.steps))
    for first, after, master_owner in zip(start.model.parameters(), plain.session.model.parameters(), wide.session.model.parameters(), strict=True):
        master = wide.masters.get(id(master_owner))
        if master is None or first.dtype not in LOW:
            continue
        intended = (master - first.detach().float()).double()
        actual = (after.detach().float() - first.detach().float()).double()
        dot += float((intended * actual).sum())
        square += float((intended * intended).sum())
        # An update is taken from half the spacing of the stored numbers on; float exponents give the spacing.
        bits = torch.finfo(first.dtype).eps
        spacing = 2.0 ** (torch.frexp(first.detach().float().abs().clamp_min(torch.finfo(first.dtype).tiny))[1] - 1).double() * bits
        moves = intended != 0
        needed.append((spacing[moves] / 2 / (intended[moves].abs() / steps)).flatten())
    if square <= 0 or not math.isfinite(dot):
        return None
    return UpdateLoss(dot / square, float(torch.cat(needed).median()))
