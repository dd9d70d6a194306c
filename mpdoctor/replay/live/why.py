"""Why an op's result is not finite: run the op alone again, in fp64, on the inputs that it had."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import torch
from torch.utils._pytree import tree_map

from mpdoctor.replay.live.events import Call, Event, External
from mpdoctor.replay.live.finiteness import NAN, dtype_name, extremes, floating_in, kind_name

_MODERATE = 1e6
"""Numbers up to this size, and down to its reciprocal, make no op overflow fp32 on the way: their sixth powers fit."""


class Mechanism(StrEnum):
    """What happened to the numbers."""

    ARRIVED = "arrived"
    """The value came in with the batch, a parameter or a buffer."""
    OVERFLOW = "overflow"
    """The exact result is finite and larger than the dtype's maximum."""
    INTERMEDIATE_OVERFLOW = "intermediate-overflow"
    """The exact result fits the dtype; something inside the op did not."""
    UNDEFINED = "undefined"
    """The exact result is not finite either."""
    MASKED_ROW = "masked-row"
    """A softmax (or the like) over nothing but -inf."""
    EMPTY_REDUCTION = "empty-reduction"
    """A mean or a norm over no element."""
    IMPOSSIBLE_TARGET = "impossible-target"
    """CTC has no alignment: a target is longer than its input."""
    WRONG_RESULT = "wrong-result"
    """The op's own result in fp64 is finite and fits, and nothing inside the op can have been too large."""
    UNSTABLE = "unstable"
    """The same op gives a finite result on the same inputs when it runs again."""
    WRITTEN = "written"
    """The code wrote the infinity itself, and nothing consumed it."""
    UNKNOWN = "unknown"
    """The inputs are gone, so the op could not run again."""


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of one bad value.

    Attributes:
        mechanism: what happened.
        text: in words, with the numbers.
        exact: the exact value (fp64) of the first bad element, where it is finite.
        eps: a constant that rounded to zero on the way, if one did.
        bad: mask of bad elements of the op's result, or None.
    """

    mechanism: Mechanism
    text: str
    exact: float | None = None
    eps: float | None = None
    bad: torch.Tensor | None = None
    batched: bool = True
    """Whether the leading dimension of `bad` may be the batch."""

    def rows(self, batch_size: int | None) -> tuple[int, ...]:
        """Batch rows that hold a bad element; empty when all do, or when the result has no batch dimension."""
        if self.bad is None or not batch_size or self.bad.dim() == 0 or batch_size < 2 or not self.batched:
            return ()
        leading = self.bad.shape[0]
        if leading % batch_size:
            return ()
        per_row = self.bad.reshape(batch_size, -1).any(1)
        rows = tuple(int(i) for i in per_row.nonzero().flatten())
        return rows if 0 < len(rows) < batch_size else ()

    def whole_rows(self, rows: tuple[int, ...], batch_size: int | None) -> bool:
        """Whether the named rows are bad in every element."""
        if self.bad is None or not rows or not batch_size:
            return False
        return bool(self.bad.reshape(batch_size, -1)[list(rows)].all())


def explain(event: Event | External, vanished_eps: Sequence[tuple[float, Event]] = ()) -> Why:
    """Why the value of `event` is not finite."""
    if isinstance(event, External):
        return _arrived(event)
    if event.deliberate:
        return Why(Mechanism.WRITTEN, f"{_short(event.op)} writes {kind_name(event.status)} on purpose, and nothing consumes it before the loss")
    if event.call is None or not event.call.intact():
        return Why(Mechanism.UNKNOWN, f"{event.op} gave {kind_name(event.status)}; its inputs were overwritten, so it could not be run again")
    try:
        return _rerun(event, event.call, vanished_eps)
    except Exception as error:  # an op that has no fp64 kernel, or whose arguments cannot be widened
        return Why(
            Mechanism.UNKNOWN,
            f"{event.op} gave {kind_name(event.status)}; it could not be run again in fp64 ({type(error).__name__})",
            bad=_bad(event.call),
        )


def _arrived(event: External) -> Why:
    what = {"parameter": "parameter", "buffer": "buffer", "input": "input", "gradient": "gradient left from an earlier step"}.get(
        event.kind, "tensor"
    )
    text = f"{what} {event.name}".strip() + f" holds {kind_name(event.status)}"
    if event.bad is not None:
        count = int(event.bad.sum())
        index = f", first at [{', '.join(map(str, event.index))}]" if event.index else ""
        text += f" ({count} of {event.bad.numel()} values{index})"
    if event.kind == "unknown":
        text = f"a tensor that no traced op made holds {kind_name(event.status)}"
    return Why(Mechanism.ARRIVED, text, bad=event.bad, batched=event.kind == "input")


def _bad(call: Call) -> torch.Tensor | None:
    return ~torch.isfinite(call.output.detach()) if call.output.layout is torch.strided else None


def _widened(value: Any) -> Any:
    """Arguments in fp64: tensors, and dtype arguments that name a narrower floating dtype."""

    def widen(item: Any) -> Any:
        if isinstance(item, torch.Tensor) and item.is_floating_point():
            return item.detach().double()
        if isinstance(item, torch.dtype) and item.is_floating_point:
            return torch.float64
        return item

    return tree_map(widen, value)


def _rerun(event: Event, call: Call, vanished_eps: Sequence[tuple[float, Event]]) -> Why:
    with torch.no_grad():
        wide = _widened(call.args)
        result = call.func(*wide, **_widened(call.kwargs))
    exact = _matching(result, call) if call.written is None else wide[call.written]
    output = call.output.detach()
    bad = ~torch.isfinite(output)
    index = tuple(int(i) for i in bad.nonzero()[0]) if output.dim() else ()
    where = f" at [{', '.join(map(str, index))}]" if index else ""
    kind = kind_name(event.status)
    operands = _operands(call, index, output.shape)
    if exact is None or exact.shape != output.shape:
        return Why(Mechanism.UNKNOWN, f"{_short(event.op)} gave {kind}; its result could not be compared with fp64", bad=bad)
    value = float(exact[index]) if index else float(exact)
    limit = torch.finfo(output.dtype).max
    if math.isfinite(value):
        if abs(value) > limit:
            times = abs(value) / limit
            text = f"{_short(event.op)}{where}: the exact value {value:.6g} exceeds {dtype_name(output.dtype)}'s {limit:.6g}" + (
                f" ({times:.2g} x)" if times >= 1.05 else ""
            )
            return Why(Mechanism.OVERFLOW, text, exact=value, bad=bad)
        if not vanished_eps and _repeats_finite(call, index):
            text = f"{_short(event.op)}{where} gave {kind}, and gives a finite value on the same inputs when it runs again"
            return Why(Mechanism.UNSTABLE, text, bad=bad)
        if _harmless_inputs(call, output.dtype):
            text = f"{_short(event.op)}{where} gives {kind}; the same op on the same inputs in fp64 gives {value:.6g}, and no input is near a limit"
            return Why(Mechanism.WRONG_RESULT, text, exact=value, bad=bad)
        text = (
            f"{_short(event.op)}{where}: the exact value {value:.6g} fits {dtype_name(output.dtype)}, an intermediate result inside the op does not"
        )
        eps = _vanished(event, vanished_eps)
        return Why(Mechanism.INTERMEDIATE_OVERFLOW, text + _eps_note(eps), exact=value, eps=eps, bad=bad)
    mechanism, reason = _undefined(event, call, index, operands, output)
    eps = _vanished(event, vanished_eps) if 0.0 in operands.values() else None
    return Why(mechanism, f"{_short(event.op)}{where}: {reason}{_eps_note(eps)}", eps=eps, bad=bad)


def _repeats_finite(call: Call, index: tuple[int, ...]) -> bool:
    """Whether the op, run again in its own dtype on the same inputs, is finite where it was not."""
    if call.written is not None or call.func._schema.is_mutable or torch.Tag.nondeterministic_seeded in call.func.tags:
        return False
    with torch.no_grad():
        again = _matching(call.func(*call.args, **call.kwargs), call)
    return again is not None and again.shape == call.output.shape and bool(torch.isfinite(again[index] if index else again))


def _harmless_inputs(call: Call, dtype: torch.dtype) -> bool:
    """Whether no product, sum or power of a few inputs can leave the format: in fp32 (or wider) nothing is very large, and nothing very small.

    16 bits are too narrow to tell: a constant that rounds to 0 is enough.
    """
    if torch.finfo(dtype).bits < 32:
        return False
    for tensor in floating_in(call.args) + floating_in(call.kwargs):
        bounds = extremes(tensor.detach())
        if bounds is None or not max(-bounds[0], bounds[1]) < _MODERATE:
            return False
        sizes = tensor.detach().abs()
        if bool(((sizes > 0) & (sizes < 1 / _MODERATE)).any()):
            return False
    return True


def _matching(result: Any, call: Call) -> torch.Tensor | None:
    """The part of a widened result that stands where the bad output stood."""
    if isinstance(result, torch.Tensor):
        return result
    if isinstance(result, (tuple, list)):
        same = [r for r in result if isinstance(r, torch.Tensor) and r.shape == call.output.shape]
        return next((r for r in same if not torch.isfinite(r).all()), same[0] if same else None)
    return None


def _short(op: str) -> str:
    return op.removeprefix("aten.")


def _vanished(event: Event, vanished_eps: Sequence[tuple[float, Event]]) -> float | None:
    """A constant that rounded to zero in the same module shortly before."""
    near = [eps for eps, at in vanished_eps if at.module == event.module and at.n <= event.n]
    return near[-1] if near else None


def _eps_note(eps: float | None) -> str:
    return f"; the constant {eps:g} that was added before is 0 in this dtype" if eps is not None else ""


def _operands(call: Call, index: tuple[int, ...], shape: torch.Size) -> dict[str, float]:
    """Values of the floating operands at one element of the result, by argument name, where they broadcast to it."""
    found: dict[str, float] = {}
    for argument, value in zip(call.func._schema.arguments, call.args, strict=False):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[argument.name] = float(value)
        elif isinstance(value, torch.Tensor) and (value.is_floating_point() or value.dim() == 0):
            try:
                found[argument.name] = float(value.detach().expand(shape)[index])
            except RuntimeError:
                continue
    return found


def _row(call: Call, index: tuple[int, ...]) -> torch.Tensor | None:
    """The slice that a softmax-like op or a reduction read for one element of its result."""
    source = call.args[0]
    if not isinstance(source, torch.Tensor) or source.dim() == 0:
        return None
    dim = call.args[1] if len(call.args) > 1 and isinstance(call.args[1], int) else -1
    if len(index) != source.dim():
        return None
    position: list[Any] = list(index)
    position[dim] = slice(None)
    return source.detach()[tuple(position)]


def _undefined(event: Event, call: Call, index: tuple[int, ...], operands: dict[str, float], output: torch.Tensor) -> tuple[Mechanism, str]:
    """Which mathematical fact makes the op undefined here, in words."""
    name = _short(event.op).lstrip("_").rstrip("_")
    x = operands.get("self", math.nan)
    if "softmax" in name or name == "logsumexp":
        row = _row(call, index)
        if row is not None and bool((row == -math.inf).all()):
            return Mechanism.MASKED_ROW, f"softmax over a row in which all {row.numel()} entries are -inf (everything is masked)"
        return Mechanism.UNDEFINED, "softmax over a row with inf or NaN"
    if name in ("mean", "var", "std", "var_mean", "std_mean") and isinstance(call.args[0], torch.Tensor):
        numel = call.args[0].numel()
        if numel == 0:
            return Mechanism.EMPTY_REDUCTION, f"{name} over no element"
        if name != "mean":
            return Mechanism.UNDEFINED, f"unbiased {name} of a single value divides by n - 1 = 0"
    if "ctc_loss" in name:
        too_long = _ctc_too_long(call)
        if too_long:
            return Mechanism.IMPOSSIBLE_TARGET, f"no alignment exists: {too_long}"
    if "nll_loss" in name and event.status & NAN:
        target = call.args[1]
        ignored = call.args[4] if len(call.args) > 4 else -100
        if isinstance(target, torch.Tensor) and bool((target == ignored).all()):
            return Mechanism.EMPTY_REDUCTION, f"the mean over no label: all {target.numel()} labels are {ignored} (ignored)"
    reasons: dict[str, Callable[[], str]] = {
        "sqrt": lambda: f"square root of the negative number {x:.6g}",
        "rsqrt": lambda: "1/sqrt(0) is infinite" if x == 0 else f"reciprocal square root of {x:.6g}",
        "log": lambda: "log(0) is -inf" if x == 0 else f"logarithm of the negative number {x:.6g}",
        "log2": lambda: f"logarithm of {x:.6g}",
        "log10": lambda: f"logarithm of {x:.6g}",
        "log1p": lambda: f"log1p of {x:.6g}",
        "reciprocal": lambda: f"1/{x:g}",
        "acos": lambda: f"arc cosine of {x:.9g}, outside [-1, 1]",
        "asin": lambda: f"arc sine of {x:.9g}, outside [-1, 1]",
        "exp": lambda: f"exp({x:.6g}) exceeds even float64",
        "pow": lambda: f"{x:.6g} to the power {operands.get('exponent', operands.get('other', math.nan)):g}",
        "div": lambda: _division(x, operands.get("other", math.nan)),
        "mul": lambda: f"{x:g} * {operands.get('other', math.nan):g}",
        "sub": lambda: f"{x:g} - {operands.get('other', math.nan):g}",
        "add": lambda: f"{x:g} + {operands.get('other', math.nan):g}",
    }
    backward = f" in the derivative of {_short(event.forward_op)}" if event.forward_op else ""
    if "weight_norm" in name and operands.get("g", operands.get("v")) == 0.0:
        return Mechanism.UNDEFINED, "a weight vector that is all zero has no direction: 0/0"
    if name in reasons and (name in ("reciprocal",) or not math.isnan(x)):
        return Mechanism.UNDEFINED, reasons[name]() + backward
    facts = ", ".join(f"{key} = {value:g}" for key, value in list(operands.items())[:3])
    return Mechanism.UNDEFINED, f"not finite in fp64 either{backward}" + (f" ({facts})" if facts else "")


def _ctc_too_long(call: Call) -> str | None:
    """Which target is longer than its input, counting a blank between repeated labels."""
    targets, inputs, lengths = call.args[1], call.args[2], call.args[3]
    inputs = inputs.tolist() if isinstance(inputs, torch.Tensor) else list(inputs)
    lengths = lengths.tolist() if isinstance(lengths, torch.Tensor) else list(lengths)
    flat = targets.flatten().tolist() if targets.dim() == 1 else None
    start = 0
    for row, (have, need) in enumerate(zip(inputs, lengths, strict=True)):
        labels = flat[start : start + need] if flat is not None else targets[row, :need].tolist()
        start += need
        repeats = sum(a == b for a, b in pairwise(labels))
        if need + repeats > have:
            return f"the target of row {row} has {need} labels ({repeats} repeated), its input {have} frames"
    return None


def _division(numerator: float, denominator: float) -> str:
    if denominator == 0:
        return "0/0" if numerator == 0 else f"{numerator:.6g}/0"
    return f"{numerator:g}/{denominator:g}"
