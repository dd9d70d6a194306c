"""What the failure looks like from outside. A run without symptoms is healthy."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.core.report import Symptom, SymptomId
from mpdoctor.core.trace import Recording
from mpdoctor.replay import observations as seen


def symptoms(recording: Recording) -> tuple[Symptom, ...]:
    """All symptoms of a recording, the failing step's first."""
    return (*_of_the_failing_step(recording), *_of_the_run(recording))


def _of_the_failing_step(recording: Recording) -> Iterator[Symptom]:
    raised, step = recording.exception, recording.failing
    if raised is not None:
        first_line = raised.message.splitlines()[0] if raised.message else ""
        yield Symptom(id=SymptomId.EXCEPTION, step=raised.step, site=raised.site, detail=f"{raised.type}: {first_line}")
    if step is None:
        return
    at = step.step
    if step.loss is not None and not math.isfinite(step.loss):
        yield Symptom(id=SymptomId.LOSS_NONFINITE, step=at, detail=f"the loss is {step.loss}")
    if step.nonfinite_grads:
        kept = " (the scaler skipped the step)" if step.skipped else ""
        yield Symptom(
            id=SymptomId.GRAD_NONFINITE,
            step=at,
            detail=f"{len(step.nonfinite_grads)} gradients are not finite{kept}, first {step.nonfinite_grads[0]}",
        )
    for later in recording.steps:
        if later.nonfinite_weights:
            detail = f"{len(later.nonfinite_weights)} parameters are not finite after the step, first {later.nonfinite_weights[0]}"
            yield Symptom(id=SymptomId.WEIGHTS_NONFINITE, step=later.step, detail=detail)
            break
    for later in recording.steps:
        if later.nonfinite_buffers:
            yield Symptom(id=SymptomId.BUFFERS_NONFINITE, step=later.step, detail=f"{', '.join(later.nonfinite_buffers[:3])} not finite")
            break
    skipped = [s for s in recording.steps if s.skipped]
    if step.passed_over and len(skipped) > 1:
        yield Symptom(id=SymptomId.SCALER_STUCK, step=at, detail=f"the scaler skipped {len(skipped)} of {len(recording.steps)} steps")


def _of_the_run(recording: Recording) -> Iterator[Symptom]:
    lost_scale = seen.dead_scale(recording)
    if lost_scale is not None:
        yield Symptom(id=SymptomId.SCALER_STUCK, step=lost_scale.step, detail=f"the loss scale fell to {lost_scale.scale:g}")
    often = seen.skips_too_often(recording)
    if often and lost_scale is None:
        half = len(recording.steps) - len(recording.steps) // 2
        yield Symptom(id=SymptomId.SCALER_STUCK, step=often[0].step, detail=f"the scaler skips {len(often)} of the last {half} steps")
    zero = seen.gradients_all_zero(recording)
    if zero and len(zero) * 2 >= len(recording.steps):
        yield Symptom(
            id=SymptomId.GRAD_NORM_COLLAPSE, step=zero[0].step, detail=f"all gradients are exactly 0 in {len(zero)} of {len(recording.steps)} steps"
        )
    elif seen.underflows(recording):
        yield Symptom(id=SymptomId.GRAD_NORM_COLLAPSE, detail=seen.lost_gradients(recording))
    rescaled = seen.rescaled_gradient(recording)
    if rescaled is not None:
        yield Symptom(
            id=SymptomId.GRAD_NORM_COLLAPSE,
            step=rescaled[0],
            detail=f"the accumulated gradient is mostly that of the last of {rescaled[1].passes} backward passes",
        )
    clipped = seen.clipped_scaled(recording)
    if clipped is not None:
        step, norm, scale = clipped
        yield Symptom(
            id=SymptomId.GRAD_NORM_COLLAPSE,
            step=step.step,
            detail=f"gradients of norm {norm / scale:.4g} reach the optimizer clipped to {step.grad_norm:.3g}",
        )
    if seen.updates_lost(recording):
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail=f"the weights take {max(0.0, recording.update_kept or 0.0):.0%} of their updates")
    if seen.lr_always_zero(recording):
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail="the learning rate is 0 in every step")
    gone, undone = seen.rate_gone(recording), seen.update_undone(recording)
    if gone is not None and not seen.lr_always_zero(recording):
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail=f"the learning rate falls from {gone[0]:.3g} to {gone[1]:.3g}")
    if undone is not None:
        detail = f"{min(1.0, undone):.0%} of the optimizer's update is gone again at the end of the step"
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail=detail)
    for name, key, dtype, kind in recording.bad_state[:1]:
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail=f"the optimizer's {key} of {name} ({dtype}) holds {kind}")
    if seen.autocast_left_open(recording):
        yield Symptom(id=SymptomId.LOSS_NOT_MOVING, detail="the forward pass keeps using the weights of the first step")
    for name, dtype, additions, error, _ in seen.lossy_accumulations(recording)[:1]:
        yield Symptom(id=SymptomId.LOSS_NOT_MOVING, detail=f"{name} collects {additions} additions in {dtype} and is {error:.0%} off")
    for absorbed in seen.absorbed_updates(recording)[:1]:
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail=f"{absorbed.share:.0%} of {absorbed.name} ({absorbed.dtype}) does not take its updates")
    for name, dtype, distinct, total in seen.rounded_positions(recording)[:1]:
        yield Symptom(id=SymptomId.DTYPE_MISMATCH, detail=f"{name} in {dtype} holds {distinct} different values for {total} positions")
    for tensor in seen.eps_alone(recording)[:1]:
        yield Symptom(id=SymptomId.LOSS_NOT_MOVING, detail=f"{tensor.name} moves by {tensor.update_amax:.3g} in a step, many times the learning rate")
    dead = seen.dead_parameters(recording)
    if dead and not zero:
        yield Symptom(id=SymptomId.GRAD_NORM_COLLAPSE, detail=f"{len(dead)} parameters have gradients of exactly 0, first {dead[0]}")
    left_in, left_out = seen.scale_left_in(recording), seen.scale_left_out(recording)
    if left_in:
        detail = f"the optimizer steps on gradients that are {left_in[0].scale_not_removed:g} times too large"
        yield Symptom(id=SymptomId.LOSS_DIVERGING, step=left_in[0].step, detail=detail)
    if left_out:
        detail = f"the optimizer steps on gradients that are {left_out[0].scale_not_applied:g} times too small"
        yield Symptom(id=SymptomId.GRAD_NORM_COLLAPSE, step=left_out[0].step, detail=detail)
    if (twice := seen.divided_again(recording)) is not None:
        detail = f"the optimizer steps on gradients that are {twice[1]:g} times too small"
        yield Symptom(id=SymptomId.GRAD_NORM_COLLAPSE, step=twice[0], detail=detail)
    outside = seen.not_optimized(recording)
    if outside:
        yield Symptom(id=SymptomId.WEIGHTS_NOT_MOVING, detail=f"{len(outside)} parameters with gradients are in no optimizer, first {outside[0]}")
    if recording.failing_step is None and recording.initial_origin is not None:
        kind = SymptomId.WEIGHTS_NONFINITE if recording.initial_bad_parameters else SymptomId.BUFFERS_NONFINITE
        yield Symptom(id=kind, step=recording.initial_origin.site.step, detail=recording.initial_origin.why)
    flushed = seen.moments_flushed(recording)
    if flushed is not None:
        yield Symptom(
            id=SymptomId.LOSS_DIVERGING, detail=f"the loss jumps from {flushed[1]:.4g} to {flushed[2]:.4g} after loading the optimizer state"
        )
    grown = seen.diverging(recording)
    if grown is not None and flushed is None:
        yield Symptom(id=SymptomId.LOSS_DIVERGING, detail=str(grown))
    stale = seen.stale_gradients(recording)
    if stale:
        yield Symptom(id=SymptomId.GRAD_NONFINITE, step=stale[0].step, detail=f"{len(stale)} steps start with an old non-finite gradient")
    if len(seen.uncleared(recording)) >= 2:
        yield Symptom(id=SymptomId.LOSS_NOT_MOVING, detail="gradients of all earlier steps are added up")
    missing = seen.always_missing(recording)
    if missing:
        yield Symptom(id=SymptomId.GRADIENTS_MISSING, detail=f"{len(missing)} used parameters never get a gradient, first {missing[0]}")
    other = seen.other_precision(recording)
    if other is not None:
        yield Symptom(id=SymptomId.SLOW_PRECISION, detail=f"{other[0]} was asked for, {other[1]:.0%} of the FLOPs run in 16 bits")
    if any(t.replaced_nan for t in recording.traces.values()):
        yield Symptom(id=SymptomId.LOSS_NONFINITE, detail="a NaN is replaced before it shows")
    if recording.failing_step is not None and (recording.traces or recording.deterministic is False) and not recording.baseline_fails:
        yield Symptom(id=SymptomId.NOT_REPRODUCIBLE, step=recording.failing_step, detail="the failure did not come back when the run was repeated")
