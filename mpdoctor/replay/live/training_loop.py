"""Run a session's steps under a guard, unchanged or with one thing changed; trace chosen steps op by op."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.report import NonFinite
from mpdoctor.core.trace import StepException, StepObservation
from mpdoctor.replay.live.changed_session import apply_to_session, make_scaler
from mpdoctor.replay.live.changes import NOTHING, Changes
from mpdoctor.replay.live.end_tensors import damaged_buffers, look_at_end_tensors, seen_finite
from mpdoctor.replay.live.fast16 import available, fast_16_bit_kernels
from mpdoctor.replay.live.finite_op import FiniteOp
from mpdoctor.replay.live.finiteness import FINITE, kind_name, status
from mpdoctor.replay.live.injected_scaler import InjectedScaler
from mpdoctor.replay.live.interception import Interception
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.optimizer_watch import norm_of
from mpdoctor.replay.live.origin import arrived_bad
from mpdoctor.replay.live.process_state import SEED, BudgetSpent, OutOfMemory, alarm, close_autocast, eager, is_out_of_memory, rng_restored, seed
from mpdoctor.replay.live.rows import in_float64, with_rows
from mpdoctor.replay.live.session import Session, SessionSource
from mpdoctor.replay.live.step_exception import step_exception
from mpdoctor.replay.live.step_mode import StepMode


@dataclass(slots=True)
class Tracing:
    """Which steps to trace, and how; `done` gets each tracer with its session and step when the step is over."""

    steps: frozenset[int]
    done: Callable[[OpTracer, Session, int], None]
    optimizer_ops: bool = False
    before: Callable[[Session, int], None] | None = None
    after_backward: Callable[[Session, int, float], None] | None = None
    """Called with the loss scale that the gradients carry, after each backward pass of a traced step."""
    after_update: Callable[[Session, int], None] | None = None
    """Called after each optimizer step of a traced step."""
    before_backward: Callable[[Session, int, torch.Tensor], None] | None = None
    """Called with the loss of each backward pass of a traced step."""
    ops: bool = True
    """Whether to trace op by op; False only calls the others."""


@dataclass(slots=True)
class Run:
    """What running a session gave.

    Attributes:
        steps: the guard's view of each step that ran.
        exception: the step that raised, if one did.
        spent: whether the time was over before the end.
        interrupted: whether Ctrl-C ended the run (where the caller keeps what ran).
        initial_bad_parameters, initial_bad_buffers: names of those that hold NaN (parameters: also inf) before the first step.
    """

    session: Session
    steps: list[StepObservation] = field(default_factory=list)
    exception: StepException | None = None
    spent: bool = False
    interrupted: bool = False
    loaded_optimizer_state: bool = False
    """Whether the optimizer had state before the first step."""
    initial_bad_parameters: tuple[str, ...] = ()
    initial_bad_buffers: tuple[str, ...] = ()
    initial_origin: NonFinite | None = None
    """The first of them, as an origin."""
    initial_weight_norm: float | None = None
    """Norm of all parameters before the first step."""
    followed: tuple[Any, ...] = ()
    """The optimizers of the run."""
    autocast_dtypes: tuple[str, ...] = ()
    emulated_cuda_autocast: bool = False
    backs_off: bool | None = None
    masters: dict[int, torch.Tensor] = field(default_factory=dict)
    """fp32 master weights that an experiment put under the optimizer, by id of the parameter."""
    seconds: float = 0.0

    def losses(self) -> list[float | None]:
        """Loss of each step."""
        return [s.loss for s in self.steps]


def failed(step: StepObservation) -> bool:
    """Whether a step's loss, weights or buffers are bad, or an optimizer stepped on bad gradients."""
    bad_loss = step.loss is not None and not math.isfinite(step.loss)
    bad_grads = bool(step.nonfinite_grads) and step.took_a_step
    return bad_loss or bool(step.nonfinite_weights) or bool(step.nonfinite_buffers) or bad_grads


def run(
    source: SessionSource,
    *,
    changes: Changes = NOTHING,
    until: int | None = None,
    steps: int | None = None,
    after_failure: int = 8,
    tracing: Tracing | None = None,
    deadline: float | None = None,
    on_step: Callable[[StepObservation], None] | None = None,
    keep_interrupted: bool = False,
) -> Run:
    """Run a fresh session.

    Raises OutOfMemory when the replay itself has too little memory, and what `source` raises.

    Args:
        source: opens the session.
        changes: the one thing that differs from the unchanged run.
        until: last step to run (inclusive); None for all batches.
        steps: number of steps to run; None for all batches.
        after_failure: how many more steps to run after the first one that failed.
        tracing: steps to trace.
        deadline: `time.monotonic()` value after which the run ends (`Run.spent`), even inside a step that hangs.
        on_step: called after each step.
        keep_interrupted: Ctrl-C ends the run like a deadline (`Run.interrupted`) once a step is done, instead of raising.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(rng_restored())
        on_cpu = source.device == "cpu"
        if available() and on_cpu:
            stack.enter_context(fast_16_bit_kernels())
        stack.enter_context(eager())
        seed(SEED)
        intercepted = stack.enter_context(Interception(changes, map_cuda=on_cpu))
        result: Run | None = None
        try:
            with alarm(deadline):
                session = source.open()
                result = Run(session)
                if steps is not None:
                    until = session.first_step + steps - 1
                _steps(result, intercepted, changes, until, after_failure, tracing, on_step)
        except BudgetSpent:
            if result is None:
                raise
            result.spent = True
        except KeyboardInterrupt:
            if not keep_interrupted or result is None or not result.steps:
                raise
            result.interrupted = True
        finally:
            close_autocast()
            for scaler in intercepted.scalers:
                if result is not None and result.backs_off is None:
                    result.backs_off = scaler.get_backoff_factor() < 0.99
    result.autocast_dtypes = tuple(dict.fromkeys(intercepted.autocast.dtypes))
    result.emulated_cuda_autocast = intercepted.autocast.emulated_cuda
    result.masters = intercepted.masters()
    result.followed = tuple({id(o): o for o in (*intercepted.watch.optimizers, *intercepted.watch.made)}.values())
    result.seconds = time.monotonic() - started
    return result


def _steps(
    result: Run,
    intercepted: Interception,
    changes: Changes,
    until: int | None,
    after_failure: int,
    tracing: Tracing | None,
    on_step: Callable[[StepObservation], None] | None,
) -> None:
    session = result.session
    watch = intercepted.watch
    watch.follow(session.model, session.optimizer)
    scaler = make_scaler(session, changes)
    if changes.dynamic_scaling and scaler is None and session.step is not None and not intercepted.scalers:
        intercepted.injected_scaler = InjectedScaler()
    result.loaded_optimizer_state = bool(session.optimizer.state)
    result.initial_bad_parameters = tuple(n for n, p in session.model.named_parameters() if status(p) != FINITE)
    bad_buffers = {n for n, b in session.model.named_buffers() if status(b) != FINITE}
    result.initial_bad_buffers = damaged_buffers(session.model)
    result.initial_origin = arrived_bad(session, result.initial_bad_parameters, result.initial_bad_buffers)
    bad_parameters = set(result.initial_bad_parameters)
    apply_to_session(session, changes)
    result.initial_weight_norm = norm_of(list(session.model.parameters()))
    left = math.inf
    for number, given in enumerate(session.batches):
        step = session.first_step + number
        if until is not None and step > until:
            break
        if step in changes.without_batches:
            continue
        batch = with_rows(given, changes.rows_kept[step]) if step in changes.rows_kept else given
        if changes.compute_dtype is torch.float64:
            batch = in_float64(batch)
        traced = tracing is not None and step in tracing.steps
        tracer = OpTracer(session.model, batch, optimizer_ops=tracing.optimizer_ops) if traced and tracing and tracing.ops else None
        mode: StepMode | None = tracer
        if changes.finite_op is not None and changes.finite_op.step == step:
            mode = FiniteOp(changes.finite_op.number, optimizer_ops=changes.finite_op.optimizer_ops)
        intercepted.new_step(step, mode)
        watch.new_step()
        pinned = _pin_scale(intercepted, changes, step)
        scale = _scale_of(intercepted)
        lr = _lr_of(session.optimizer)
        if tracing is not None and tracing.before is not None and traced:
            tracing.before(session, step)
        intercepted.on_backward = intercepted.on_optimizer_step = intercepted.before_backward = None
        if tracing is not None and traced:
            intercepted.on_optimizer_step = partial(tracing.after_update, session, step) if tracing.after_update is not None else None
            intercepted.before_backward = partial(tracing.before_backward, session, step) if tracing.before_backward is not None else None
        if tracing is not None and tracing.after_backward is not None and traced:
            at_step = changes.backward_scale_at
            carried = (scale or 1.0) * changes.backward_scale * (at_step[1] if at_step is not None and at_step[0] == step else 1.0)
            intercepted.on_backward = partial(tracing.after_backward, session, step, carried)
        returned: Any = None
        try:
            with mode if mode is not None else nullcontext(), intercepted.looks():
                returned = _one_step(session, batch, scaler, number)
        except (BudgetSpent, KeyboardInterrupt, UnreadableInput):
            raise
        except (Exception, SystemExit) as error:
            if is_out_of_memory(error):
                raise OutOfMemory(error) from error
            result.exception = step_exception(error, step, tracer)
            if tracer is not None and tracing is not None:
                if tracer.raised is None:
                    look_at_end_tensors(tracer, session.model)
                    _blame(tracer, intercepted.stopped_by)
                tracing.done(tracer, session, step)
            return
        if pinned is not None:
            pinned()
        if changes.cleared_gradients and (intercepted.optimizer_steps or watch.nonfinite or watch.stale):
            session.optimizer.zero_grad(set_to_none=True)
        parameters = dict(session.model.named_parameters())
        observation = _observe(session, intercepted, step, returned, scale, lr, parameters, bad_parameters, bad_buffers)
        if tracer is not None and tracing is not None:
            finite = seen_finite(tracer, parameters.values(), watch, observation.weight_norm or 0.0)
            look_at_end_tensors(tracer, session.model, finite=finite)
            if observation.loss is not None and not math.isfinite(observation.loss):
                _blame(tracer, intercepted.given_up)
            tracing.done(tracer, session, step)
        result.steps.append(observation)
        if on_step is not None:
            on_step(observation)
        bad_parameters.update(observation.nonfinite_weights)
        bad_buffers.update(observation.nonfinite_buffers)
        if failed(observation):
            left = min(left, after_failure + 1)
        left -= 1
        if left <= 0:
            return


def _blame(tracer: OpTracer, look: torch.Tensor | None) -> None:
    """Where nothing else that must be finite is bad: the value that the code saw, and did not go on with, is where the damage ends."""
    if look is not None and not tracer.ends:
        tracer.end_of("loss", "loss", look)


def _one_step(session: Session, batch: Any, scaler: Any, number: int) -> Any:
    """The run's own step, or the plain loop around its loss."""
    if session.step is not None:
        returned = session.step(session.model, session.optimizer, batch, scaler)
    else:
        returned = _plain_step(session, batch, scaler, number)
    if session.after_step is not None:
        session.after_step(session.model)
    return returned


def _plain_step(session: Session, batch: Any, scaler: Any, number: int) -> dict[str, float]:
    """zero_grad, loss, scaled backward, unscale, clip, step, update, schedule."""
    every = session.settings.accumulation
    if number % every == 0 and session.zeroed_grads:
        session.optimizer.zero_grad(set_to_none=True)
    loss = session.loss(session.model, batch)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape = f"shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise UnreadableInput(f"loss(model, batch) must return a scalar tensor, not {shape}", "Reduce the loss (mean or sum) in the recipe.")
    value = float(loss.detach())
    scaled = scaler.scale(loss) if scaler is not None else loss
    (scaled / every if every > 1 else scaled).backward()
    if (number + 1) % every == 0:
        if session.settings.clip is not None:
            if scaler is not None:
                scaler.unscale_(session.optimizer)
            torch.nn.utils.clip_grad_norm_(session.model.parameters(), session.settings.clip)
        if scaler is not None:
            scaler.step(session.optimizer)
            scaler.update()
        else:
            session.optimizer.step()
        if session.scheduler is not None:
            session.scheduler.step()
    return {"loss": value}


def _pin_scale(intercepted: Interception, changes: Changes, step: int) -> Callable[[], None] | None:
    """Set the loss scale of one step, and return what puts the old one back."""
    if changes.scale_at is None or changes.scale_at[0] != step or not intercepted.scalers:
        return None
    scaler = intercepted.scalers[0]
    if scaler._scale is None:
        scaler._lazy_init_scale_growth_tracker(torch.device(scaler._device))
    old = scaler._scale.clone()
    scaler._scale.fill_(changes.scale_at[1])

    def back() -> None:
        scaler._scale.copy_(old)

    return back


def _scale_of(intercepted: Interception) -> float | None:
    return float(intercepted.scalers[0].get_scale()) if intercepted.scalers else None


def _lr_of(optimizer: Any) -> float | None:
    groups = getattr(optimizer, "param_groups", None) or [{}]
    lr = groups[0].get("lr")
    return float(lr) if lr is not None else None


def _observe(
    session: Session,
    intercepted: Interception,
    step: int,
    returned: Any,
    scale: float | None,
    lr: float | None,
    parameters: Mapping[str, torch.Tensor],
    bad_parameters: set[str],
    bad_buffers: set[str],
) -> StepObservation:
    watch = intercepted.watch
    if watch.grad_norm is None:  # nothing stepped: accumulation, or a loop of its own
        watch.look_at_grads(session.optimizer)
    loss = _loss_of(returned, intercepted.loss)
    if intercepted.given_up is not None and (intercepted.loss is None or watch.grad_norm == 0.0):
        loss = float(kind_name(status(intercepted.given_up)))  # the code saw it, and left the step out, or put a zero in its place
    weight_norm = norm_of(list(parameters.values()))
    bad_weights = () if math.isfinite(weight_norm) else tuple(n for n, p in parameters.items() if n not in bad_parameters and status(p) != FINITE)
    grad_norm = watch.grad_norm
    before_clipping = next((c.norm for c in intercepted.clip_calls if not c.by_value and c.scale == 1.0), None)
    if before_clipping is not None and grad_norm is not None:
        grad_norm = before_clipping
    if watch.nonfinite and grad_norm is not None and math.isfinite(grad_norm):
        grad_norm = math.nan
    return StepObservation(
        step=step,
        loss=loss,
        grad_norm=grad_norm,
        scale=scale,
        lr=lr,
        optimizer_steps=intercepted.optimizer_steps,
        skipped=intercepted.skipped,
        weight_norm=weight_norm,
        nonfinite_grads=tuple(watch.nonfinite),
        nonfinite_weights=bad_weights,
        nonfinite_buffers=tuple(n for n, b in session.model.named_buffers() if n not in bad_buffers and status(b) != FINITE),
        grads_missing=tuple(watch.missing(session.optimizer)) if intercepted.loss is not None else (),
        stale_grads=tuple(watch.stale),
        uncleared_grads=watch.uncleared,
        scale_not_removed=intercepted.scale_not_removed,
        scale_not_applied=intercepted.scale_not_applied,
        outside_optimizers=watch.outside(parameters) if intercepted.optimizer_steps else (),
        clip_calls=tuple(intercepted.clip_calls),
        autocast_left_on=torch.is_autocast_enabled("cpu") and torch.is_autocast_cache_enabled(),
    )


def _loss_of(returned: Any, captured: torch.Tensor | None) -> float | None:
    if isinstance(returned, dict) and "loss" in returned:
        with suppress(TypeError, ValueError):
            return float(returned["loss"])
    return float(captured.detach()) if captured is not None and captured.numel() == 1 else None
