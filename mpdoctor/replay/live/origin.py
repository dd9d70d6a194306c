"""From a bad loss, gradient, parameter or buffer back to the op that made the first bad value of its chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.location import FileSpan, Phase, TensorSite
from mpdoctor.core.report import NonFinite, TimelineEntry
from mpdoctor.replay.live.events import EndTensor, Event, External
from mpdoctor.replay.live.finiteness import NEG_INF, bad_mask, dtype_name, first_bad_index, kind_name, own_look, status
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.session import Session
from mpdoctor.replay.live.why import Mechanism, Why, explain

_TORCH = str(Path(torch.__file__).parent)
_PACKAGE = str(Path(__file__).parents[2])
_DEMOS = str(Path(__file__).parents[2] / "demos")
"""The bundled runs stand for a user's code."""
_END_ORDER = {"loss": 0, "gradient": 1, "parameter": 2, "buffer": 3}


def source_line(stack: Any) -> FileSpan | None:
    """Innermost line of the stack that is neither torch's nor mpdoctor's own: the user's (or a library's) code."""
    if stack is None:
        return None
    for frame in reversed(stack.summary()):
        name = frame.filename
        own = name.startswith((_TORCH, _PACKAGE, "<frozen", "torch/")) and not name.startswith(_DEMOS)
        if not own:
            return FileSpan(file=name, line=frame.lineno)
    return None


def site_of(event: Event | External, step: int, end: str = "") -> TensorSite:
    """Where an event happened, in the report's terms.

    A value that arrived bad is named by its tensor; an optimizer's op by the parameter that it wrote (`end`, where it wrote none itself).
    """
    if isinstance(event, External):
        phase = {"parameter": Phase.PARAMETER, "buffer": Phase.BUFFER, "gradient": Phase.BACKWARD}.get(event.kind, Phase.INPUT)
        module = event.name if event.kind in ("parameter", "buffer", "gradient") else "batch"
        index = f"[{', '.join(map(str, event.index))}]" if event.index else ""
        return TensorSite(step=step, phase=phase, module=module, op=event.kind, tensor=f"{event.name}{index}")
    if event.phase is Phase.UNSCALE and event.optimizer:
        return TensorSite(step=step, phase=event.phase, module=_target(event), op=event.optimizer, tensor=_target(event) or None)
    if event.phase is Phase.OPTIMIZER:
        name = _target(event) or end
        return TensorSite(step=step, phase=event.phase, module=name, op=event.optimizer or event.op, tensor=name or None, source=None)
    op = event.node if event.phase is Phase.BACKWARD and event.node else event.op
    buffer = event.target[1] if event.target is not None and event.target[0] == "buffer" else None
    return TensorSite(step=step, phase=event.phase, module=event.module, op=op, tensor=buffer, source=source_line(event.stack))


def _target(event: Event) -> str:
    return event.target[1] if event.target else ""


class Origin:
    """The chain behind one bad end tensor, taken apart.

    Attributes:
        root: the first bad value of the chain.
        chain: from the end back to the root.
        why: what happened to the numbers at the root.
    """

    def __init__(self, tracer: OpTracer, end: EndTensor, batch_size: int | None) -> None:
        self.end = end
        self.batch_size = batch_size
        self.chain = _walk(end.source)
        self._hidden_until_backward(tracer)
        self.root = self._root()
        self.why: Why = explain(self.root, tracer.seen.vanished_eps)
        self.rows = self.why.rows(batch_size)

    def _hidden_until_backward(self, tracer: OpTracer) -> None:
        """Go on to the forward op where a derivative makes a bad value of the very result that was bad, and hidden, before."""
        last = self.chain[-1]
        if not isinstance(last, Event) or last.phase is not Phase.BACKWARD or last.sequence is None or last.forward_op is None:
            return
        for event in tracer.events:
            if event.phase in (Phase.FORWARD, Phase.LOSS) and event.created and not event.deliberate and event.sequence == last.sequence:
                if event.op == last.forward_op:
                    self.chain += [e for e in _walk(event) if e not in self.chain]
                return

    def _root(self) -> Event | External:
        root = self.chain[-1]
        # Within unscale and the optimizer the event that wrote a parameter is the place to name, not a scalar's op before it.
        if isinstance(root, Event) and root.phase in (Phase.UNSCALE, Phase.OPTIMIZER) and root.target is None:
            named = [e for e in self.chain if isinstance(e, Event) and e.phase is root.phase and e.target]
            return named[-1] if named else root
        return root

    def harm(self) -> Event | None:
        """First event of a later phase that carries the value, when the root's own phase hid it."""
        later = [e for e in reversed(self.chain) if isinstance(e, Event) and e is not self.root and e.phase is not getattr(self.root, "phase", None)]
        return later[0] if later else None

    def describe(self, step: int) -> NonFinite:
        """The origin as the report names it."""
        bits = self.root.status
        harm = self.harm() if self.end.kind != "loss" else None
        return NonFinite(
            site=site_of(self.root, step, self.end.name if self.end.kind == "parameter" else ""),
            kind=kind_name(bits),
            dtype=self.root.dtype,
            harmful=True,
            why=self.why.text,
            rows=self.rows,
            hurts_at=site_of(harm, step) if harm is not None else None,
            mechanism=str(self.why.mechanism),
            exact=self.why.exact,
            whole_rows=self.why.whole_rows(self.rows, self.batch_size),
            share=float(self.why.bad.float().mean()) if self.why.bad is not None and self.why.bad.numel() else None,
        )


def arrived_bad(session: Session, parameters: Sequence[str], buffers: Sequence[str]) -> NonFinite | None:
    """The first parameter or buffer that is bad before the first step, as an origin."""
    named = dict(session.model.named_parameters()) | dict(session.model.named_buffers())
    for kind, names in (("parameter", parameters), ("buffer", buffers)):
        for name in names[:1]:
            tensor = named[name]
            event = External(kind, name, status(tensor), dtype_name(tensor.dtype), first_bad_index(tensor.detach()), bad_mask(tensor))
            why = explain(event)
            share = float(why.bad.float().mean()) if why.bad is not None and why.bad.numel() else None
            return NonFinite(
                site=site_of(event, session.first_step),
                kind=kind_name(event.status),
                dtype=event.dtype,
                harmful=True,
                why=why.text,
                mechanism=str(why.mechanism),
                share=share,
            )
    return None


def _walk(source: Event | External | None) -> list[Event | External]:
    """Chain of events from the end back to the root.

    A deliberate infinity is no cause: the op that made NaN of it is (softmax over a row of -inf).
    """
    chain: list[Event | External] = []
    current = source
    while current is not None and current not in chain:
        chain.append(current)
        if isinstance(current, External):
            break
        # A value that is only carried on is its source's, deliberate or not: an infinity that reaches the loss is no mask.
        candidates = [s for s in current.sources if not _is_mask(s)] if current.created else current.sources
        current = candidates[0] if candidates else None
    return chain


def _is_mask(source: Event | External) -> bool:
    """Whether an infinity was meant: written as a constant, or a mask of -inf that came with the batch."""
    if isinstance(source, External):
        return source.status == NEG_INF and source.kind != "parameter"
    if source.created:
        return source.deliberate
    return all(_is_mask(s) for s in source.sources)


def find_origin(tracer: OpTracer, batch_size: int | None) -> Origin | None:
    """The origin of the first bad end tensor: the loss, else a gradient, a parameter, a buffer."""
    ends = sorted(tracer.ends, key=lambda end: _END_ORDER.get(end.kind, 9))
    return Origin(tracer, ends[0], batch_size) if ends and ends[0].source is not None else None


def swallowed(tracer: OpTracer, step: int) -> NonFinite | None:
    """The first 16-bit overflow of the forward pass or the loss that nothing bad came of: dividing by infinity makes 0."""
    for event in tracer.events[:8]:
        if event.created and not event.deliberate and event.phase in (Phase.FORWARD, Phase.LOSS) and event.dtype in ("float16", "bfloat16"):
            why = explain(event, tracer.seen.vanished_eps)
            if why.mechanism is Mechanism.OVERFLOW:
                kind, mechanism = kind_name(event.status), str(why.mechanism)
                return NonFinite(
                    site=site_of(event, step), kind=kind, dtype=event.dtype, harmful=True, why=why.text, mechanism=mechanism, exact=why.exact
                )
    return None


@own_look
def keep_inputs(tracer: OpTracer) -> None:
    """Copy what the guilty op was given, before an optimizer overwrites the parameters among it: `why.py` runs the op again afterwards."""
    for end in sorted(tracer.ends, key=lambda end: _END_ORDER.get(end.kind, 9))[:1]:
        root = _walk(end.source)[-1] if end.source is not None else None
        if isinstance(root, Event) and root.call is not None and root.call.intact():
            root.call.copy_inputs()


def timeline(tracer: OpTracer, origin: Origin | None, step: int) -> tuple[TimelineEntry, ...]:
    """The failing step from input to optimizer: what each phase did, the origin and where it spread."""
    entries: list[TimelineEntry] = []
    marked: dict[int, str] = {}
    if origin is not None:
        marked[id(origin.root)] = "origin"
        harm = origin.harm()
        if harm is not None:
            marked[id(harm)] = "harm"
        for event in origin.chain:
            marked.setdefault(id(event), "spread")
        if isinstance(origin.root, External):
            entries.append(TimelineEntry(site=site_of(origin.root, step), note=origin.why.text, marker="origin", dtype=origin.root.dtype))
    for event in tracer.events:
        marker = marked.get(id(event), "")
        if marker:
            note = origin.why.text if marker == "origin" and origin else f"{kind_name(event.status)} " + ("made here" if event.created else "arrives")
            entries.append(TimelineEntry(site=site_of(event, step), note=note, marker=marker, dtype=event.dtype))
    harmless = [e for e in tracer.events if e.created and id(e) not in marked]
    if harmless:
        first = harmless[0]
        what = "deliberate mask" if first.deliberate else "reaches nothing that is trained"
        note = f"{kind_name(first.status)}, harmless ({what})" + (f"; {len(harmless) - 1} more like it" if len(harmless) > 1 else "")
        entries.append(TimelineEntry(site=site_of(first, step), note=note, dtype=first.dtype))
    for end in tracer.ends[:1]:
        site = TensorSite(step=step, phase=_end_phase(end.kind), module=end.name if end.kind != "loss" else "", op=end.kind)
        more = len([e for e in tracer.ends if e.kind == end.kind]) - 1
        entries.append(
            TimelineEntry(site=site, note=f"{end.kind} is {kind_name(end.status)}" + (f"; so are {more} others" if more else ""), marker="end")
        )
    order = list(Phase)
    return tuple(sorted(entries, key=lambda e: order.index(e.site.phase)))


def _end_phase(kind: str) -> Phase:
    return {"loss": Phase.LOSS, "gradient": Phase.BACKWARD, "parameter": Phase.OPTIMIZER, "buffer": Phase.BUFFER}[kind]
