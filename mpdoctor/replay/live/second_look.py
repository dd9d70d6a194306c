"""What a failing run may still hide: weights out of proportion, a bad place that moves, optimizer state that nobody reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import torch

from mpdoctor.core.trace import WeightOutlier
from mpdoctor.replay.live.events import Event
from mpdoctor.replay.live.finiteness import FINITE, dtype_name, kind_name, status
from mpdoctor.replay.live.origin import Origin, site_of
from mpdoctor.replay.live.session import Session, SessionSource
from mpdoctor.replay.live.training_loop import run

_PROPORTION = {torch.float16: 1e4}
_WIDE_PROPORTION = 1e8
"""An element this many times larger than all others of its tensor has not been learned (fp16 has no room for more than 1e4)."""
_DRIFT = 100.0
"""Parameters outside every optimizer (averages) that grow by this much have run away."""
_FEW = 4
"""More such elements in one tensor are no accident of memory."""
_INTEGER = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float64: torch.int64}


Drift = tuple[str, float, float]
"""(parameter, norm at the start, norm later)."""


def weights_before(source: SessionSource, step: int, deadline: float | None) -> tuple[tuple[WeightOutlier, ...], tuple[Drift, ...]]:
    """What is odd about the parameters just before `step`: elements out of all proportion, and growth of those that no optimizer holds."""
    start = run(source, until=-1, deadline=deadline).session
    if step == start.first_step:
        return _outliers(start), ()
    early = {o.place for o in _outliers(start)}
    norms = {name: float(p.detach().double().norm()) for name, p in start.model.named_parameters()}
    late = run(source, until=step - 1, deadline=deadline)
    held = {id(p) for o in late.followed for group in o.param_groups for p in group["params"]}
    free = {name: float(p.detach().double().norm()) for name, p in late.session.model.named_parameters() if id(p) not in held}
    drifted = tuple((name, norms[name], now) for name, now in free.items() if now > _DRIFT * norms.get(name, now) > 0)
    return _outliers(late.session, early), drifted


def _outliers(session: Session, early: Collection[str] | None = None) -> tuple[WeightOutlier, ...]:
    """Outliers of a session's parameters; `early` holds the places of those that were there from the start (None: all)."""
    found: list[WeightOutlier] = []
    for name, parameter in session.model.named_parameters():
        if parameter.numel() < 2 * _FEW or parameter.dtype not in _INTEGER or status(parameter) != FINITE:
            continue
        sizes = parameter.detach().abs().flatten()
        largest = sizes.topk(_FEW + 1)
        values = largest.values.double().tolist()
        proportion = _PROPORTION.get(parameter.dtype, _WIDE_PROPORTION)
        count = next((i for i in range(1, _FEW + 1) if values[i - 1] > proportion * values[i] > 0), 0)
        for flat in largest.indices[:count].tolist():
            index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), parameter.shape))
            bit, restored = _flipped(parameter.detach().flatten()[flat], values[count])
            outlier = WeightOutlier(
                name=name, index=index, value=float(parameter.detach().flatten()[flat]), usual=values[count], flipped_bit=bit, restored=restored
            )
            found.append(replace(outlier, at_start=early is None or outlier.place in early))
    # In fp16 the range is too narrow to tell one damaged weight from features that were learned or set, unless it is the only one.
    return tuple(found) if len(found) == 1 or all(abs(o.value) > _WIDE_PROPORTION * o.usual for o in found) else ()


def _flipped(value: torch.Tensor, usual: float) -> tuple[int | None, float]:
    """(bit, value without its flip) of the highest bit whose flip makes the element as large as the others of its tensor."""
    bits = value.reshape(1).view(_INTEGER[value.dtype])
    for bit in range(bits.element_size() * 8 - 2, -1, -1):
        other = float((bits ^ (1 << bit)).view(value.dtype))
        if usual / 1e3 <= abs(other) <= usual * 2:
            return bit, other
    return None, 0.0


def nonfinite_state(session: Session) -> tuple[tuple[str, str, str, str], ...]:
    """(parameter, name of the state, dtype, kind) of optimizer state that is not finite."""
    names = {id(p): n for n, p in session.model.named_parameters()}
    found = []
    for parameter, state in session.optimizer.state.items():
        for key, value in state.items() if isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and (bits := status(value)) != FINITE:
                found.append((names.get(id(parameter), "?"), str(key), dtype_name(value.dtype), kind_name(bits)))
    return tuple(found)


def moved(first: Origin, again: Origin | None, failed_at: int | None) -> str:
    """How the place of the first bad value differs between two traces of the same step; empty when it does not.

    Args:
        first: of the first trace.
        again: of the second one; None when the step did not fail in it.
        failed_at: the step at which the second run failed, if it did.
    """
    if again is None:
        where = f"fails at step {failed_at}" if failed_at is not None else "does not fail"
        return f"a third run from the same state {where}"
    a, b = first.root, again.root
    if not isinstance(a, Event) or not isinstance(b, Event):
        return ""
    sites = site_of(a, 0), site_of(b, 0)
    if (sites[0].module, sites[0].op) != (sites[1].module, sites[1].op):
        return f"the first bad value came from {_words(sites[0])} the first time and from {_words(sites[1])} the second"
    one, two = first.why.bad, again.why.bad
    if one is None or two is None or one.shape != two.shape or torch.equal(one, two):
        return ""
    return f"in {_words(sites[0])} the bad elements are at {_index(one)} the first time and at {_index(two)} the second"


def _words(site: object) -> str:
    op, module = getattr(site, "op", "") or "", getattr(site, "module", "")
    return f"{op.removeprefix('aten.')}" + (f" ({module})" if module else "")


def _index(bad: torch.Tensor) -> str:
    at = bad.nonzero()
    more = f" and {len(at) - 1} more" if len(at) > 1 else ""
    return f"[{', '.join(map(str, at[0].tolist()))}]{more}" if len(at) and bad.dim() else "its only element"
