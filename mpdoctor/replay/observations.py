"""Questions that a recording answers; detectors and symptoms ask the same ones. No torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mpdoctor.core.location import Phase
from mpdoctor.core.report import NonFinite
from mpdoctor.core.trace import Absorbed, Recording, RepeatDifference, Rescaled, StepObservation, TensorStats

GROWTH = 8.0
"""Loss or gradient norm that is this many times its smallest value of the steps before counts as growing..."""
WEIGHT_GROWTH = 3.0
"""... and so does a norm of all weights this many times its first value."""
DIVERGED = 10.0
"""A loss that ends this many times above its start has diverged..."""
WORSE_THAN_IDLE = 3.0
"""... and so has one that ends this many times above what the same batches give without any update, where no second optimizer works against it."""
UNDERFLOW_GAIN = 1.25
"""Gradient norm in fp32 over the norm in use, from which fp16 loses more than rounding."""
BY_CHANCE = 0.01
"""Relative difference of two equal runs, at the first step that differs, from which it is no rounding."""
STARVED_SHARE = 0.25
"""Share of the elements in starved parameters from which a part of the model does not learn."""
ABSORBED = 0.8
"""Share of an in-place update that rounds away from which the tensor stands still."""
LONG_UPDATE = 10.0
"""Adam's steps are about the learning rate long; this many times longer means that it divides by eps alone."""
LONGEST_UPDATE = 1000.0
"""No step of Adam is this many times the learning rate long, whatever share of its second moments is zero."""
UPDATE_KEPT = 0.25
"""Below this share of the intended update the weights stand still."""
FLUSHED = 0.5
"""Share of second moments flushed to zero from which the optimizer divides by eps alone."""
ACCUMULATION_ERROR = 0.05
"""Relative error of a 16-bit sum from which it is wrong rather than rounded."""
UNDONE = 0.95
"""Share of the optimizer's update that is taken back within the step, from which the run goes nowhere."""
RATE_GONE = 1e-5
"""A learning rate below this share of its largest moves nothing that matters."""
LOSS_JUMP = 3.0
"""A loss that is this many times the one before has jumped."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How something grew over the steps before the failure."""

    what: str
    first: float
    last: float
    steps: int
    without_updates: bool = False
    """Whether `first` is what the same batches give with the weights left alone, and not an earlier value."""

    @property
    def rate(self) -> float:
        """Factor per step."""
        return float((self.last / self.first) ** (1 / self.steps))

    def __str__(self) -> str:
        if self.without_updates:
            return f"{self.what} ends at {self.last:.4g}; without any update the same batches give {self.first:.4g}"
        count = "1 step" if self.steps == 1 else f"{self.steps} steps"
        pace = f", {self.rate:.3g} times a step" if self.steps > 1 else ""
        return f"{self.what} grew {self.last / self.first:.3g} times in {count} ({self.first:.4g} to {self.last:.4g}{pace})"


def finite(values: Sequence[float | None]) -> list[float]:
    """The finite numbers among `values`."""
    return [v for v in values if v is not None and math.isfinite(v)]


def growth(recording: Recording) -> Growth | None:
    """The strongest growth over the steps before the failure (or over all steps), or None."""
    if recording.grows_at_any_rate:
        return None
    at = recording.failing_step
    before = [s for s in recording.steps if at is None or s.step < at]
    inside = before + [s for s in recording.steps if s.step == at]
    found: list[Growth] = []
    for what, values, threshold in (
        ("the loss", [s.loss for s in inside], GROWTH),
        ("the gradient norm", [s.grad_norm for s in inside if not s.skipped], GROWTH),
        ("the weight norm", [recording.initial_weight_norm, *(s.weight_norm for s in before)], WEIGHT_GROWTH),
    ):
        grown = _grown(what, finite([abs(v) if v is not None else None for v in values]), threshold)
        if grown is not None:
            found.append(grown)
    return max(found, key=lambda g: g.last / g.first) if found else None


def _grown(what: str, values: list[float], threshold: float) -> Growth | None:
    """Growth from the smallest value to the last one, if it went up nearly all the way."""
    if len(values) < 2:
        return None
    start = min(range(len(values)), key=values.__getitem__)
    tail = values[start:]
    if len(tail) < 2 or tail[0] <= 0 or tail[-1] < threshold * tail[0] or tail[-1] < max(values) / 4:
        return None
    rises = sum(b > a for a, b in pairwise(tail))
    return Growth(what, tail[0], tail[-1], len(tail) - 1) if rises * 2 >= len(tail) - 1 else None


def rising(recording: Recording) -> bool:
    """Whether the loss of a run without a failing step stands far above its start at the end: a reason to look at what the batches alone do."""
    losses = _all_losses(recording)
    if recording.failing_step is not None or len(losses) < 4:
        return False
    quarter = max(1, len(losses) // 4)
    return _median(losses[-quarter:]) > WORSE_THAN_IDLE * min(map(abs, losses[:quarter])) > 0


def diverging(recording: Recording) -> Growth | None:
    """A run without a failing step that steps too large have ruined.

    Either its loss went up and stayed up (its last quarter stands ten times above what the same batches give with the weights left
    alone), or it exploded and the gradients are exactly zero ever since.
    """
    losses = _all_losses(recording)
    if recording.failing_step is not None or len(losses) < 4:
        return None
    quarter = max(1, len(losses) // 4)
    unmoved = finite(recording.unmoved_losses)
    compared = len(unmoved) == len(losses)
    start, end = _median(unmoved[-quarter:] if compared else losses[:quarter]), _median(losses[-quarter:])
    if start > 0 and end > (WORSE_THAN_IDLE if compared and recording.optimizers == 1 else DIVERGED) * start:
        return Growth("the loss", start, end, len(losses) - 1, without_updates=compared)
    dead = next((i for i, s in enumerate(recording.steps) if s.grad_norm == 0.0), None)
    if dead is None or dead < 2 or any(s.grad_norm != 0.0 for s in recording.steps[dead:]):
        return None
    return _grown("the loss", [abs(v) for v in losses[:dead]], DIVERGED)


def _all_losses(recording: Recording) -> list[float]:
    """The loss of every step; empty when one is missing or not finite."""
    losses = finite([s.loss for s in recording.steps])
    return losses if len(losses) == len(recording.steps) else []


def _median(values: Sequence[float]) -> float:
    """Median; a loss that falls below zero has not grown."""
    return sorted(values)[len(values) // 2]


def gradients_all_zero(recording: Recording) -> list[StepObservation]:
    """Steps whose gradients are exactly zero although the loss is not: a loss of 0 has nothing left to learn, unless it never was anything else."""
    zero = [s for s in recording.steps if s.grad_norm == 0.0 and not s.grads_missing]
    if len(zero) == len(recording.steps) >= 3 and all(s.loss == 0.0 for s in zero):
        return zero
    return [s for s in zero if s.loss is not None and s.loss != 0.0 and math.isfinite(s.loss)]


def taken(recording: Recording) -> list[StepObservation]:
    """Steps before the failing one in which the weights were updated."""
    return [s for s in recording.steps if s.took_a_step and (recording.failing_step is None or s.step < recording.failing_step)]


def swallowed(recording: Recording) -> NonFinite | None:
    """The overflow that makes gradients vanish: an infinity that something was divided by."""
    found = next((t.swallowed for _, t in sorted(recording.traces.items()) if t.swallowed is not None), None)
    if found is None or recording.failing_step is not None:
        return None
    return found if gradients_all_zero(recording) or dead_parameters(recording) else None


def skips_too_often(recording: Recording) -> list[StepObservation]:
    """Skipped steps of a scaler that never comes to rest: more than a third of the later half of the run."""
    later = recording.steps[len(recording.steps) // 2 :]
    skipped = [s for s in later if s.skipped]
    return skipped if len(later) >= 8 and 3 * len(skipped) > len(later) and recording.failing_step is None else []


def differs_by_chance(recording: Recording) -> RepeatDifference | None:
    """Where the repeated run, from the same state and seeds, first differs by more than the order of its sums explains."""
    difference = recording.repeat_difference
    return difference if difference is not None and difference.relative > BY_CHANCE else None


def made_by_hand(origin: NonFinite) -> bool:
    """Whether an op of the loop's own, between backward pass and optimizer, made the first bad value (a sum over ranks in fp16, say)."""
    return origin.site.phase is Phase.UNSCALE and (origin.site.op or "").startswith("aten.")


def rescaled_gradient(recording: Recording) -> tuple[int, Rescaled] | None:
    """(step, gradient) of the first traced step whose loop scaled a gradient after several backward passes."""
    return next(((number, trace.rescaled) for number, trace in sorted(recording.traces.items()) if trace.rescaled is not None), None)


def bad_learning_rate(recording: Recording) -> StepObservation | None:
    """The first step with a learning rate that is not finite, or negative."""
    return next((s for s in recording.steps if s.lr is not None and not (math.isfinite(s.lr) and s.lr >= 0)), None)


def underflows(recording: Recording) -> bool:
    """Whether fp16 flushes gradients that fp32 has."""
    if recording.scaling_gain is None or "float16" not in recording.compute_dtypes:
        return False
    return recording.scaling_gain > UNDERFLOW_GAIN or (recording.starved is not None and recording.starved.share > STARVED_SHARE)


def lost_gradients(recording: Recording) -> str:
    """What of the gradients fp16 loses, in words, for a recording in which it `underflows`."""
    gain, starved = recording.scaling_gain or 1.0, recording.starved
    if math.isinf(gain):
        return "all gradients are exactly 0"
    if gain > UNDERFLOW_GAIN or starved is None:
        return f"the gradient norm is {1 / gain:.0%} of fp32's: the rest is flushed to 0"
    modules = f"{starved.modules[0] or 'the model'} first" if starved.modules else ""
    return f"parameters with {starved.share:.0%} of the gradient elements lose a good part of their gradient, flushed to 0 ({modules})"


def updates_lost(recording: Recording) -> bool:
    """Whether 16-bit weights take next to nothing of their updates."""
    return recording.update_kept is not None and recording.update_kept < UPDATE_KEPT


def always_missing(recording: Recording) -> tuple[str, ...]:
    """Parameters that the forward pass reads and that never get a gradient."""
    steps = [s for s in recording.steps if s.loss is not None]
    if not steps:
        return ()
    missing: set[str] = set(steps[0].grads_missing).intersection(*(s.grads_missing for s in steps[1:]))
    if not recording.traces:
        return ()
    read_somewhere = {n for t in recording.traces.values() for n in missing - set(t.unused_parameters)}
    return tuple(sorted(read_somewhere))


def clipped_scaled(recording: Recording) -> tuple[StepObservation, float, float] | None:
    """(step, norm seen, loss scale) of the first clipping that cut gradients which still carried the loss scale."""
    for step in recording.steps:
        for call in step.clip_calls:
            if call.scale > 1.0 and math.isfinite(call.norm) and call.norm > call.limit:
                return step, call.norm, call.scale
    return None


def stale_gradients(recording: Recording) -> list[StepObservation]:
    """Steps that started with non-finite gradients of an earlier step although their own loss is finite."""
    return [s for s in recording.steps if s.stale_grads and s.loss is not None and math.isfinite(s.loss)]


def uncleared(recording: Recording) -> list[StepObservation]:
    """Steps in which the optimizer used gradients that its last step had used already."""
    return [s for s in recording.steps if s.uncleared_grads]


def autocast_left_open(recording: Recording) -> bool:
    """Whether an autocast region with its weight cache on stayed open over steps."""
    return sum(s.autocast_left_on for s in recording.steps) >= 2


def moments_flushed(recording: Recording) -> tuple[float, float, float] | None:
    """(share flushed, loss before, loss after) when a loaded optimizer state lost its second moments and the loss jumped."""
    share = recording.loaded_moments_flushed
    losses = finite([s.loss for s in recording.steps[:4]])
    if share is None or share < FLUSHED or len(losses) < 2:
        return None
    worst = max(losses[1:])
    return (share, losses[0], worst) if worst > LOSS_JUMP * abs(losses[0]) else None


def flushed_tensors(recording: Recording) -> list[TensorStats]:
    """Parameters whose 16-bit second moment is zero where the first is not."""
    return [t for t in (recording.trace.tensors if recording.trace else ()) if (t.moment_zero_share or 0.0) > FLUSHED]


def lossy_accumulations(recording: Recording) -> list[tuple[str, str, int, float, str]]:
    """(name, dtype, additions, relative error, place) of 16-bit sums that went wrong."""
    sums = [a for trace in recording.traces.values() for a in trace.accumulations if a.relative_error > ACCUMULATION_ERROR]
    return [(a.name, a.dtype, a.additions, a.relative_error, str(a.source or "")) for a in sums]


def low_share(recording: Recording) -> float | None:
    """Share of matrix-product FLOPs that ran in 16 bits or less in the traced step; None without such products."""
    flops = recording.trace.flops if recording.trace else {}
    total = sum(flops.values())
    return sum(v for k, v in flops.items() if k in ("float16", "bfloat16") or k.startswith("float8")) / total if total else None


def other_precision(recording: Recording) -> tuple[str, float] | None:
    """(precision asked for, share of FLOPs in 16 bits) when the run is not in the 16-bit precision that it asks for."""
    share = low_share(recording)
    if share is None or recording.exception is not None:
        return None
    if recording.asked_precision in ("fp16", "bf16") and share < 0.5:
        return recording.asked_precision, share
    if recording.asked_precision is None and recording.autocast_dtypes and share < 0.05:
        return recording.autocast_dtypes[0], share
    return None


def absorbed_updates(recording: Recording) -> list[Absorbed]:
    """16-bit tensors that an in-place update outside the optimizer leaves as they are, in the last traced step."""
    return [a for a in (recording.trace.absorbed if recording.trace else ()) if a.share > ABSORBED]


def rounded_positions(recording: Recording) -> tuple[tuple[str, str, int, int], ...]:
    """Buffers that count up and have lost numbers in 16 bits."""
    return recording.trace.rounded_positions if recording.trace else ()


def eps_alone(recording: Recording) -> list[TensorStats]:
    """Parameters with second moments of zero and an update that is many times the learning rate."""
    rates = finite([s.lr for s in recording.steps])
    if not rates:
        return []
    long, longest = LONG_UPDATE * max(rates), LONGEST_UPDATE * max(rates)
    tensors = recording.trace.tensors if recording.trace else ()
    return [t for t in tensors if (t.update_amax or 0.0) > (long if (t.moment_zero_share or 0.0) > FLUSHED else longest) and t.moment_zero_share]


def dead_parameters(recording: Recording) -> list[str]:
    """Parameters that are read and whose gradient is exactly zero in every traced step, when they are at least half of what trains."""
    done = {s.step for s in recording.steps if s.loss == 0.0}
    traces = [t for t in recording.traces.values() if t.origin is None and t.step not in done]
    if recording.failing_step is not None or len(traces) < 2 or underflows(recording):
        return []
    by_step = [{t.name: t for t in trace.tensors if t.grad_zero_share is not None and t.numel > 1} for trace in traces]
    shared = set.intersection(*(set(step) for step in by_step))
    dead = sorted(n for n in shared if all(step[n].grad_zero_share == 1.0 for step in by_step))
    total = sum(by_step[0][n].numel for n in shared)
    return dead if total and 2 * sum(by_step[0][n].numel for n in dead) >= total else []


def scale_left_in(recording: Recording) -> list[StepObservation]:
    """Steps in which an optimizer stepped on gradients that still carried the loss scale."""
    return [s for s in recording.steps if s.scale_not_removed is not None]


def scale_left_out(recording: Recording) -> list[StepObservation]:
    """Steps whose gradients were divided by a scale that their backward pass had not been given."""
    return [s for s in recording.steps if s.scale_not_applied is not None]


def not_optimized(recording: Recording) -> tuple[str, ...]:
    """Parameters with gradients that no optimizer holds, when they are most of the model."""
    if not recording.steps or not recording.traces:
        return ()
    names = set(recording.steps[-1].outside_optimizers)
    stats = recording.trace.tensors if recording.trace else ()
    total = sum(t.numel for t in stats if t.grad_norm is not None)
    return tuple(sorted(names)) if total and 2 * sum(t.numel for t in stats if t.name in names) > total else ()


def divided_again(recording: Recording) -> tuple[int, float] | None:
    """(step, loss scale) of the first traced step whose gradients were divided by the loss scale twice."""
    return next(((n, t.divided_again) for n, t in sorted(recording.traces.items()) if t.divided_again is not None), None)


def update_undone(recording: Recording) -> float | None:
    """Share of the optimizer's update that is gone again at the end of the last traced step, when next to nothing of it is left."""
    share = recording.trace.update_undone if recording.trace and recording.failing_step is None else None
    return share if share is not None and share > UNDONE else None


def rate_gone(recording: Recording) -> tuple[float, float, int] | None:
    """(largest rate, last rate, steps) when a schedule took the learning rate to nothing for most of the run."""
    rates = [s.lr for s in recording.steps if s.lr is not None]
    if len(rates) < 8 or recording.schedule_over or max(rates) <= 0:
        return None
    gone = sum(r < RATE_GONE * max(rates) for r in rates)
    return (max(rates), rates[-1], gone) if 2 * gone > len(rates) and rates[-1] < RATE_GONE * max(rates) else None


def lr_always_zero(recording: Recording) -> bool:
    """Whether the learning rate was 0 in every step."""
    rates = finite([s.lr for s in recording.steps])
    return len(rates) >= 3 and all(r == 0.0 for r in rates) and not recording.schedule_over


def dead_scale(recording: Recording) -> StepObservation | None:
    """First step whose loss scale is 0, or so small that fp16 gradients vanish."""
    return next((s for s in recording.steps if s.scale is not None and s.scale < 2.0**-10), None)
