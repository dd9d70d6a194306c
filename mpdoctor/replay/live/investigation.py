"""Watch the unchanged run, find the step that fails, run it again under the tracer, and measure what a guard cannot see."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from mpdoctor.core.rule import Skipped
from mpdoctor.core.trace import GradientExponents, Recording, RepeatDifference, StepObservation
from mpdoctor.replay.live.batch_facts import batch_facts
from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.events import Event
from mpdoctor.replay.live.gradient_census import window
from mpdoctor.replay.live.measurements import TraceCollector, gradients_at, has_master, loaded_moments_flushed, update_loss
from mpdoctor.replay.live.origin import Origin
from mpdoctor.replay.live.process_state import BudgetSpent, OutOfMemory
from mpdoctor.replay.live.second_look import moved, nonfinite_state, weights_before
from mpdoctor.replay.live.session import SessionSource
from mpdoctor.replay.live.training_loop import Run, Tracing, failed, run
from mpdoctor.replay.observations import rising

T = TypeVar("T")

INTERRUPTED = "interrupted by Ctrl-C"

_PROBED_SKIPS = 4
"""Groups of skipped steps that are tried again at loss scale 1."""
_FIXED_SKIPS = 4
"""Steps in a row that a loop with a scale of its own making passes over before the scale counts as fixed."""
_STEPS_BEFORE = 3
"""Steps before the failing one whose magnitudes are recorded too, module by module: they show what grew."""
_REPEATED_STEPS = 12
"""Steps of a run without failure that are run again; the first and the last of them are traced."""
_UPDATE_STEPS = 10
"""Steps over which lost updates are measured."""


class Investigation:
    """The unchanged run, watched.

    Attributes:
        batches, first_step, device: of the run.
        recording: what was observed, plain data.
        origin: the live origin of the failing step (holds tensors), or None.
        skipped: what was not measured, and why.
        interrupted: whether Ctrl-C ended it early.
    """

    def __init__(
        self,
        source: SessionSource,
        *,
        steps: int | None = None,
        deadline: float | None = None,
        on_step: Callable[[StepObservation], None] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.source = source
        self.deadline = deadline
        self.skipped: list[Skipped] = []
        self._note = note or (lambda _text: None)
        self.origin: Origin | None = None
        recording = self._watched(run(source, steps=steps, deadline=self._share(0.4), on_step=on_step, keep_interrupted=True))
        # The first run is let go of here, its model and optimizer with it: each look opens a run of its own.
        self.recording = self._looked_into(recording)

    @property
    def emulated(self) -> tuple[str, ...]:
        """What the replay does differently from the machine that the code was written for, in words."""
        found = ["torch.compile is off: compiled code runs eagerly"]
        if self.recording.compute_dtypes and self.source.device == "cpu":
            found.append("16-bit matrix products on this CPU are computed in fp32 and rounded once")
        if self._emulated_cuda_autocast:
            found.append("autocast for CUDA runs on the CPU with CUDA's op lists")
        return tuple(found)

    def _share(self, fraction: float) -> float | None:
        """A deadline after this fraction of the time that is left."""
        if self.deadline is None:
            return None
        return time.monotonic() + fraction * max(0.0, self.deadline - time.monotonic())

    def _watched(self, baseline: Run) -> Recording:
        """What the guard saw of the first run, and the little of it that is needed later."""
        session = baseline.session
        self.interrupted = baseline.interrupted
        self.batches, self.first_step = session.batches, session.first_step
        self.device = str(next((p.device for p in session.model.parameters()), "cpu"))
        self._emulated_cuda_autocast = baseline.emulated_cuda_autocast
        self._master_weights = any(has_master(p, _floating_state(session.optimizer, p)) for p in session.model.parameters())
        steps = tuple(baseline.steps)
        if baseline.spent or self.interrupted:
            after = f"the steps after {steps[-1].step}" if steps else "the steps"
            self.skipped.append(Skipped(what=after, why=INTERRUPTED if self.interrupted else "the time of --budget was over"))
        hard = next((s.step for s in steps if failed(s)), baseline.exception.step if baseline.exception else None)
        compute = tuple(dict.fromkeys((*baseline.autocast_dtypes, *_low_weight_dtypes(session.model))))
        return Recording(
            steps=steps,
            exception=baseline.exception,
            failing_step=hard,
            bad_state=nonfinite_state(session) if hard is None and baseline.exception is None else (),
            compute_dtypes=compute,
            autocast_dtypes=baseline.autocast_dtypes,
            schedule_over=session.schedule_over,
            asked_precision=session.settings.asked,
            weights_dtype=_low_weight_dtypes(session.model)[0] if _low_weight_dtypes(session.model) else "float32",
            has_scaler=any(s.scale is not None for s in steps),
            scaler_backs_off=baseline.backs_off,
            initial_bad_parameters=baseline.initial_bad_parameters,
            initial_bad_buffers=baseline.initial_bad_buffers,
            initial_origin=baseline.initial_origin,
            initial_weight_norm=baseline.initial_weight_norm,
            optimizers=max(1, len(baseline.followed)),
            loaded_state=baseline.loaded_optimizer_state,
        )

    def _looked_into(self, recording: Recording) -> Recording:
        """With what further runs show."""
        for look in (self._fresh_moments, self._persistent_skips, self._repeat, self._place_again, self._outliers, self._unmoved, self._measure):
            try:
                if self.interrupted:
                    raise KeyboardInterrupt
                recording = look(recording)
            except KeyboardInterrupt:
                self.interrupted = True
                self.skipped.append(Skipped(what="the op-level trace and the measurements", why=INTERRUPTED))
                break
            except OutOfMemory as error:
                self.skipped.append(Skipped(what="a repeat of the run", why=error.message))
        return recording

    def _fresh_moments(self, recording: Recording) -> Recording:
        """The optimizer state as it was loaded, before the first step."""
        if not recording.loaded_state:
            return recording
        moments = self._guarded(
            "the optimizer state as loaded", lambda: loaded_moments_flushed(run(self.source, until=-1, deadline=self.deadline).session)
        )
        return replace(recording, loaded_moments_flushed=moments[0], loaded_moments_dtype=moments[1]) if moments else recording

    def _guarded(self, what: str, measure: Callable[[], T]) -> T | None:
        """A measurement that may run out of time; then it is listed as skipped."""
        try:
            if self.interrupted:
                raise KeyboardInterrupt
            return measure()
        except KeyboardInterrupt:
            self.interrupted = True
            self.skipped.append(Skipped(what=what, why=INTERRUPTED))
            return None
        except OutOfMemory as error:
            self.skipped.append(Skipped(what=what, why=error.message))
            return None
        except BudgetSpent:
            self.skipped.append(Skipped(what=what, why="the time of --budget was over"))
            return None

    # -- skipped steps: the scaler's search, or gradients that are bad at every scale?

    def _persistent_skips(self, recording: Recording) -> Recording:
        """With the first step whose skip is a failure, and whether its gradients are finite at scale 1."""
        hard = recording.failing_step
        steps = [s for s in recording.steps if hard is None or s.step < hard]
        groups = _skip_groups(steps)
        if not groups:
            return recording
        self._note("trying skipped steps again at loss scale 1")
        for group in groups if len(groups) <= _PROBED_SKIPS else [*groups[: _PROBED_SKIPS - 1], groups[-1]]:
            at = group[0].step
            seen = self._guarded(f"step {at} at loss scale 1", partial(self._step_at_one, recording, at))
            finite = not seen.passed_over if seen is not None else None
            if seen is not None and (other := _other_loss(group[0], seen)) is not None:
                return replace(recording, failing_step=at, loss_by_scale=(at, *other), finite_at_scale_one=finite)
            if finite is False:
                return replace(recording, failing_step=at, finite_at_scale_one=False)
            never_recovers = group[-1] is recording.steps[-1] and len(group) >= 2
            fixed = not recording.scaler_backs_off and (recording.has_scaler or len(group) >= _FIXED_SKIPS)
            if finite and fixed and never_recovers:
                return replace(recording, failing_step=at, finite_at_scale_one=True)
        return recording

    def _step_at_one(self, recording: Recording, step: int) -> StepObservation | None:
        own = recording.has_scaler
        # A loop that scales by hand has no scale to set; its backward pass starts from a smaller loss instead.
        changes = Changes(scale_at=(step, 1.0)) if own else Changes(backward_scale_at=(step, 2.0**-16))
        result = run(self.source, changes=changes, until=step, deadline=self.deadline)
        return next((s for s in result.steps if s.step == step), None) if not result.spent else None

    # -- the repeat, under the tracer

    def _repeat(self, recording: Recording) -> Recording:
        """Run again: is it the same, and what do the traced steps show op by op?"""
        steps = recording.steps
        failing = recording.failing_step
        if failing is None and not steps:
            return recording
        last = failing if failing is not None else steps[min(len(steps), _REPEATED_STEPS) - 1].step
        full = {failing} if failing is not None else {steps[0].step, last}
        before = {s.step for s in steps if failing is not None and failing - _STEPS_BEFORE <= s.step < failing}
        self._note("running it again under the tracer")
        seen = recording.failing
        by_optimizer = seen is not None and bool(seen.nonfinite_weights) and not seen.nonfinite_grads
        collector = TraceCollector(frozenset(full))
        tracing = Tracing(
            frozenset(full | before),
            collector.done,
            optimizer_ops=by_optimizer,
            before=collector.before,
            after_backward=collector.after_backward,
            after_update=collector.after_update,
            before_backward=collector.before_backward,
        )
        try:
            again = run(self.source, until=last, tracing=tracing, deadline=self._share(0.5), after_failure=0)
        except BudgetSpent:
            self.skipped.append(Skipped(what="the op-level trace", why="the time of --budget was over"))
            return recording
        if again.spent:
            self.skipped.append(Skipped(what="the op-level trace", why="the time of --budget was over"))
        fails_again = failing is None or failing in collector.traces or (again.exception is not None and again.exception.step == failing)
        if failing is not None and recording.exception is None and recording.failing is not None:
            repeated = next((s for s in again.steps if s.step == failing), None)
            fails_again = repeated is not None and (failed(repeated) or repeated.passed_over)
        self.origin = collector.origins.get(failing) if failing is not None else None
        exception = again.exception if again.exception is not None and recording.exception is not None else recording.exception
        difference = _difference(steps, again.steps)
        made_in = {self.origin.root.dtype} if self.origin is not None and isinstance(self.origin.root, Event) else set()
        by_hand = made_in & {"float16", "bfloat16"} - {*recording.compute_dtypes}
        return replace(
            recording,
            compute_dtypes=(*recording.compute_dtypes, *by_hand),
            exception=exception,
            traces=collector.traces,
            baseline_fails=failing is not None and fails_again,
            deterministic=difference is None if again.steps and steps else None,
            repeat_difference=difference,
        )

    # -- what a failing step may still hide

    def _place_again(self, recording: Recording) -> Recording:
        """Trace the failing step once more: a sound device makes the first bad value at the same place again."""
        first = self.origin
        at = recording.failing_step
        if first is None or at is None or recording.exception is not None:
            return recording
        collector = TraceCollector(frozenset())
        self._note("looking for the first bad value once more")
        by_optimizer = isinstance(first.root, Event) and first.root.optimizer_ops
        tracing = Tracing(frozenset([at]), collector.done, optimizer_ops=by_optimizer)
        once_more = lambda: run(self.source, until=at, tracing=tracing, deadline=self._share(0.5), after_failure=0)  # noqa: E731
        again = self._guarded("the place of the first bad value, once more", once_more)
        if again is None or again.spent:
            return recording
        words = moved(first, collector.origins.get(at), next((s.step for s in again.steps if failed(s)), None))
        return replace(recording, origin_moved=words, deterministic=False if words else recording.deterministic)

    def _outliers(self, recording: Recording) -> Recording:
        """Single weights that are out of all proportion, where something grew too large."""
        at, origin = recording.failing_step, recording.trace.origin if recording.trace else None
        overflows = origin is None or "overflow" in origin.mechanism or origin.mechanism == "unknown"
        if at is None or recording.exception is not None or recording.initial_bad_parameters or not overflows:
            return recording
        found = self._guarded("weights out of proportion", lambda: weights_before(self.source, at, self.deadline))
        return replace(recording, weight_outliers=found[0], drifted=found[1]) if found is not None else recording

    def _unmoved(self, recording: Recording) -> Recording:
        """The losses of the same batches with the weights left alone, where the loss rises: is it the weights, or the batches and the objective?"""
        if not rising(recording):
            return recording
        self._note("running it with the weights left alone")
        last = recording.steps[-1].step
        still = self._guarded(
            "the losses without any update", lambda: run(self.source, changes=Changes(lr_factor=0.0), until=last, deadline=self.deadline)
        )
        losses = [s.loss for s in still.steps if s.loss is not None] if still is not None else []
        return replace(recording, unmoved_losses=tuple(losses)) if len(losses) == len(recording.steps) else recording

    # -- measurements

    def _measure(self, recording: Recording) -> Recording:
        steps = recording.steps
        if not steps and recording.exception is None:
            return recording
        at = recording.failing_step if recording.failing_step is not None else (steps[0].step if steps else 0)
        number = at - self.first_step
        if 0 <= number < len(self.batches) and (recording.failing_step is not None or recording.exception is not None):
            others = [b for i, b in enumerate(self.batches[:64]) if i != number]
            rows = recording.trace.origin.rows if recording.trace and recording.trace.origin else ()
            recording = replace(recording, rows=rows, row_facts=batch_facts(self.batches[number], others, rows))
        if "float16" in recording.compute_dtypes:
            recording = self._measure_scaling(recording)
        low = recording.weights_dtype != "float32" and not self._master_weights
        if recording.failing_step is None and low and sum(s.took_a_step for s in steps) >= 3:
            last = steps[min(len(steps), _UPDATE_STEPS) - 1].step
            self._note("measuring lost updates")
            loss = self._guarded("lost updates", lambda: update_loss(self.source, last, self.deadline))
            if loss is not None:
                rate = next((s.lr for s in steps if s.lr), None)
                recording = replace(recording, update_kept=loss.kept, lr_for_half=rate * loss.rate_factor if rate is not None else None)
        return recording

    def _measure_scaling(self, recording: Recording) -> Recording:
        """Does fp16 lose gradients at the loss scale in use, and which scales would work?"""
        at = self._step_with_gradients(recording)
        if at is None:
            return recording
        self._note("measuring the loss-scale window")
        census = self._guarded("the loss-scale window", lambda: gradients_at(self.source, at, Changes(compute_dtype=torch.float32), self.deadline))
        if census is None:
            return recording
        used = next((s.scale for s in recording.steps if s.step == at), None)
        scales = window(census, used=used if used is not None else 1.0)
        plain = self._guarded("gradients at the loss scale in use", lambda: gradients_at(self.source, at, Changes(), self.deadline))
        starved = plain.starved_against(census) if plain is not None else None
        gain = None
        if plain is not None and math.isfinite(plain.norm) and census.norm > 0:
            gain = census.norm / plain.norm if plain.norm > 0 else math.inf
        exponents: tuple[GradientExponents, ...] = ()
        if math.isfinite(census.amax):
            exponents = (GradientExponents(name="all", zeros=census.zeros, counts=census.counts), *census.modules)
        return replace(recording, window=scales, gradient_exponents=exponents, scaling_gain=gain, starved=starved)

    def _step_with_gradients(self, recording: Recording) -> int | None:
        """A step early enough that fp16 and fp32 have not drifted apart, with finite loss."""
        for step in recording.steps[:2]:
            if step.loss is not None and math.isfinite(step.loss) and not step.nonfinite_grads:
                return step.step
        return recording.failing_step


def _other_loss(step: StepObservation, at_one: StepObservation) -> tuple[float, float] | None:
    """(loss, loss at scale 1) of a step whose forward pass gives another loss at another loss scale."""
    a, b = step.loss, at_one.loss
    if a is None or b is None or math.isnan(a) or not math.isfinite(b) or abs(a - b) <= 0.01 * abs(b):
        return None
    return a, b


def _skip_groups(steps: Sequence[StepObservation]) -> list[list[StepObservation]]:
    """Runs of skipped steps with a finite loss."""
    groups: list[list[StepObservation]] = []
    open_group: list[StepObservation] | None = None
    for step in steps:
        if step.passed_over:
            if open_group is None:
                open_group = []
                groups.append(open_group)
            open_group.append(step)
        else:
            open_group = None
    return groups


def _low_weight_dtypes(model: torch.nn.Module) -> tuple[str, ...]:
    names = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.dtype in (torch.float16, torch.bfloat16)}
    return tuple(sorted(names))


def _floating_state(optimizer: Any, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
    state = optimizer.state.get(parameter, {}) if parameter in optimizer.state else {}
    return {k: v for k, v in state.items() if isinstance(v, torch.Tensor) and v.is_floating_point()}


def _difference(steps: Sequence[StepObservation], again: Sequence[StepObservation]) -> RepeatDifference | None:
    """Where a repeated run stops being bitwise equal, as far as loss, gradient norm and weights tell."""
    for a, b in zip(steps, again, strict=False):
        for what, first, second in (
            ("loss", a.loss, b.loss),
            ("gradient norm", a.grad_norm, b.grad_norm),
            ("weight norm", a.weight_norm, b.weight_norm),
        ):
            both_nan = first is not None and second is not None and math.isnan(first) and math.isnan(second)
            if first != second and not both_nan:
                return RepeatDifference(step=a.step, what=what, first=first, again=second)
    return None
