"""A step that raised: what, and where."""

from __future__ import annotations

from pathlib import Path
from traceback import FrameSummary

from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.trace import StepException
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.origin import site_of, source_line


def step_exception(error: BaseException, step: int, tracer: OpTracer | None) -> StepException:
    """A step that raised, with its place as far as the tracer, or else the traceback, tells."""
    stack = error.__traceback__
    frames: list[tuple[str, int, str]] = []
    while stack is not None:
        frames.append((stack.tb_frame.f_code.co_filename, stack.tb_lineno, stack.tb_frame.f_code.co_name))
        stack = stack.tb_next
    source = source_line(_Frames(frames))
    site = TensorSite(step=step, phase=_raised_in(frames), module="", source=source)
    if tracer is not None and tracer.raised is not None:
        at = site_of(tracer.raised, step)
        site = TensorSite(step=step, phase=at.phase, module=at.module, op=at.op, source=source or at.source)
    elif tracer is not None and tracer.stack.at_exception is not None:
        site = TensorSite(step=step, phase=Phase.FORWARD, module=tracer.stack.at_exception, source=source)
    elif tracer is not None and tracer.phase is not None:
        site = TensorSite(step=step, phase=tracer.phase, source=source)
    return StepException(step=step, type=type(error).__name__, message=str(error).strip(), site=site)


def _raised_in(frames: list[tuple[str, int, str]]) -> Phase:
    """The phase that torch's own frames of a traceback tell."""
    places = {(Path(name).name, function) for name, _, function in frames}
    if ("grad_scaler.py", "unscale_") in places or ("clip_grad.py", "clip_grad_norm_") in places:
        return Phase.UNSCALE
    if any(name == "optimizer.py" or (name, function) == ("grad_scaler.py", "step") for name, function in places):
        return Phase.OPTIMIZER
    if any(name in ("graph.py", "_tensor.py") and function in ("_engine_run_backward", "backward") for name, function in places):
        return Phase.BACKWARD
    return Phase.LOSS


class _Frames:
    """Traceback frames in the form that `source_line` reads."""

    def __init__(self, frames: list[tuple[str, int, str]]) -> None:
        self._frames = frames

    def summary(self) -> list[FrameSummary]:
        """See `CapturedTraceback.summary`."""
        return [FrameSummary(name, line, function) for name, line, function in self._frames]
