"""The op-level tracer inside a loop or notebook of the user's own: `with mpdoctor.trace(model, ...) as step:`."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from mpdoctor.core.report import NonFinite, TimelineEntry
from mpdoctor.core.trace import StepException, StepTrace
from mpdoctor.replay.frames import events_frame, modules_frame, tensors_frame
from mpdoctor.replay.live.changes import NOTHING
from mpdoctor.replay.live.end_tensors import look_at_end_tensors
from mpdoctor.replay.live.finiteness import kind_name
from mpdoctor.replay.live.interception import Interception
from mpdoctor.replay.live.measurements import TraceCollector
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.origin import site_of
from mpdoctor.replay.live.process_state import eager, rng_restored
from mpdoctor.replay.live.session import Session
from mpdoctor.replay.live.step_exception import step_exception

if TYPE_CHECKING:
    import pandas as pd


class LoopTrace:
    """One traced step. Nothing of the step changes but its speed; compiled code runs eagerly inside the block.

    The block may hold any part of a step. What must be finite at its end: the loss that `backward` starts from (or what `look_at` is
    given), gradients, parameters and buffers. With an optimizer its ops are read too, and the weights are copied to see what it changes.

    Attributes:
        origin: the first harmful value that is not finite; None where there is none, and before the block has ended.
        timeline: the origin, and how it spread through the phases of the step.
        events: all ops that made such a value, or carried one into another phase, harmless ones included.
        exception: place and message of what the block raised. It is raised on.
        details: everything that was seen, as plain data.
    """

    def __init__(self, model: torch.nn.Module, *, optimizer: torch.optim.Optimizer | None = None, batch: Any = None, step: int = 0) -> None:
        self.origin: NonFinite | None = None
        self.timeline: tuple[TimelineEntry, ...] = ()
        self.events: tuple[TimelineEntry, ...] = ()
        self.exception: StepException | None = None
        self.details = StepTrace(step=step)
        self._session = Session(
            model=model, optimizer=optimizer if optimizer is not None else _NoOptimizer(), batches=[batch], loss=_no_loss, first_step=step
        )
        self._reads_optimizer = optimizer is not None
        self._step = step
        self._tracer: OpTracer | None = None
        self._collector = TraceCollector()
        self._open = ExitStack()
        self._done = False

    def __enter__(self) -> LoopTrace:
        if self._tracer is not None or self._done:
            raise RuntimeError("a trace follows one step; make a new one with mpdoctor.trace(...)")
        session = self._session
        tracer = OpTracer(session.model, session.batches[0], optimizer_ops=self._reads_optimizer)
        if self._reads_optimizer:
            self._collector.before(session, self._step)
        with ExitStack() as opening:
            opening.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message=".*global hooks on modules")  # a compiled model runs eagerly here
            opening.enter_context(eager())
            intercepted = opening.enter_context(Interception(NOTHING, map_cuda=False))
            intercepted.watch.follow(session.model, session.optimizer)
            intercepted.new_step(self._step, tracer)
            opening.enter_context(tracer)
            self._open = opening.pop_all()
        self._tracer = tracer
        return self

    def look_at(self, tensor: torch.Tensor, name: str = "loss") -> None:
        """A tensor that must be finite, in a block without `backward`: the loss, say, or a prediction."""
        if self._tracer is None:
            raise RuntimeError("look_at belongs inside the `with` block")
        self._tracer.end_of("loss", name, tensor)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tracer = self._tracer
        self._open.close()
        self._tracer, self._done = None, True
        if tracer is None:
            return
        device = next((p.device.type for p in self._session.model.parameters()), "cpu")
        with torch.no_grad(), torch.autocast(device, enabled=False), rng_restored():
            look_at_end_tensors(tracer, self._session.model)
            self._collector.done(tracer, self._session, self._step)
        self.details = self._collector.traces[self._step]
        self.origin, self.timeline = self.details.origin, self.details.timeline
        self.events = tuple(
            TimelineEntry(
                site=site_of(event, self._step),
                note=f"{kind_name(event.status)} " + ("made here" if event.created else "arrives") + (" on purpose" if event.deliberate else ""),
                dtype=event.dtype,
            )
            for event in tracer.events
        )
        if isinstance(error, Exception):
            self.exception = step_exception(error, self._step, tracer)
        self._collector = TraceCollector()  # lets the tensors go

    def to_frame(self, kind: str = "events") -> pd.DataFrame:
        """`events`, `tensors` (one row per parameter) or `modules` (largest magnitudes) as a table.

        Raises ValueError for another kind, MissingDependency without pandas.
        """
        match kind:
            case "events":
                return events_frame(self.events)
            case "tensors":
                return tensors_frame(self.details.tensors)
            case "modules":
                return modules_frame(self.details.modules)
        raise ValueError(f"no table {kind!r}; there are events, tensors, modules")

    def __repr__(self) -> str:
        if self._tracer is not None:
            return f"<trace of step {self._step}: still running>"
        if not self._done:
            return f"<trace of step {self._step}: not begun; use it as `with mpdoctor.trace(...) as step:`>"
        lines = [f"step {self._step}: {self.details.ops} ops"]
        origin = self.origin
        if self.exception is not None:
            lines.append(f"raised {self.exception.type} ({_place(self.exception)}): {self.exception.message}")
        if origin is not None:
            lines.append(f"first {origin.kind} ({origin.dtype}): {origin.site}{_source(origin)}")
            lines.append(f"  {origin.why}")
            if origin.rows:
                lines.append(f"  batch rows {', '.join(map(str, origin.rows))}")
            lines += [f"  {entry.marker or '-':7}{entry.site}: {entry.note}" for entry in self.timeline if entry.marker != "origin"]
        elif self.events:
            harmless = "value that is not finite, which reaches" if len(self.events) == 1 else "values that are not finite, which reach"
            lines.append(f"{len(self.events)} {harmless} nothing that must be finite; first {self.events[0].site}")
        elif self.exception is None:
            lines.append("all values are finite")
        return "\n".join(lines)


def _place(exception: StepException) -> str:
    site = exception.site
    return " ".join(str(part) for part in (site.phase, site.module, site.op, site.source) if part)


def _source(origin: NonFinite) -> str:
    return f" at {origin.site.source}" if origin.site.source is not None else ""


class _NoOptimizer(torch.optim.Optimizer):
    """Stands for the optimizer that a trace was not given."""

    def __init__(self) -> None:
        self.state, self.param_groups = {}, []  # type: ignore[assignment]  # the base class refuses to hold nothing


def _no_loss(_model: torch.nn.Module, _batch: Any) -> torch.Tensor:
    raise AssertionError("a traced loop computes its own loss")
