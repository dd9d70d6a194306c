"""How large a step's gradients are: exponents of the true gradients, and the loss scales that fp16 could hold them with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from mpdoctor.core.numerics import FP16
from mpdoctor.core.trace import GradientExponents, LossScaleWindow, StarvedParameters
from mpdoctor.replay.live.finiteness import readable
from mpdoctor.replay.observations import UNDERFLOW_GAIN

_CHUNK = 1 << 16
"""Elements that are counted at a time: they stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class TensorCensus:
    """One parameter's gradient: its module (where it came with a name), elements that are not zero, norm."""

    module: str
    nonzero: int
    norm: float


@dataclass(frozen=True, slots=True)
class Census:
    """Gradients by binary exponent.

    Attributes:
        counts: exponent -> number of elements with 2**exponent <= |g| < 2**(exponent + 1).
        zeros: elements that are exactly zero.
        norm, amax: of all gradients.
    """

    counts: dict[int, int]
    zeros: int
    norm: float
    amax: float
    tensors: tuple[TensorCensus, ...] = ()
    """The same by tensor, in the order of the tensors."""
    modules: tuple[GradientExponents, ...] = ()
    """The same by module, where the gradients came with names."""

    def starved_against(self, true: Census) -> StarvedParameters | None:
        """Parameters that are left without a good part of the gradient that `true` has. None where the two cannot be compared.

        Norms count, not elements: most gradients of a large vocabulary are next to nothing, and nobody misses them.
        """
        total = sum(t.nonzero for t in true.tensors)
        if len(self.tensors) != len(true.tensors) or not total:
            return None
        pairs = zip(self.tensors, true.tensors, strict=True)
        starved = [t for mine, t in pairs if mine.nonzero < t.nonzero and t.norm > UNDERFLOW_GAIN * mine.norm]
        return StarvedParameters(share=sum(t.nonzero for t in starved) / total, modules=tuple(dict.fromkeys(t.module for t in starved)))

    @property
    def elements(self) -> int:
        """Number of gradient elements, zeros included."""
        return self.zeros + sum(self.counts.values())

    @property
    def zero_share(self) -> float:
        """Share of elements that are exactly zero."""
        return self.zeros / self.elements if self.elements else 0.0


def census_of(grads: Iterable[torch.Tensor], scale: float = 1.0) -> Census:
    """Count the exponents of gradients that carry `scale` (a power of two keeps the counts exact). What is not finite has the exponent 128."""
    counts: dict[int, int] = {}
    zeros, square, amax = 0, 0.0, 0.0
    tensors: list[TensorCensus] = []
    mantissa, exponent = math.frexp(scale)
    shift = exponent - 1 if mantissa == 0.5 else None
    for grad in grads:
        flat = readable(grad.detach())
        if flat is None:
            continue
        nonzero, own = 0, 0.0
        for chunk in flat.reshape(-1).split(_CHUNK):
            values = chunk.double() if scale == 1.0 else chunk.double() / scale
            if shift is not None and chunk.dtype is not torch.float64:
                found = {e - shift: n for e, n in _exponents(chunk.float()).items()}  # fp32 holds every 16-bit number
            else:
                found = _wide_exponents(values)
            for e, n in found.items():
                counts[e] = counts.get(e, 0) + n
            nonzero += sum(found.values())
            zeros += chunk.numel() - sum(found.values())
            own += float(torch.dot(values, values))
            low, high = torch.aminmax(values)
            amax = _larger(amax, max(-low.item(), high.item()))
        square += own
        tensors.append(TensorCensus("", nonzero, _root(own)))
    return Census(counts, zeros, _root(square), amax, tuple(tensors))


def _root(square: float) -> float:
    return math.sqrt(square) if square >= 0 else math.nan


def _exponents(values: torch.Tensor) -> dict[int, int]:
    """Exponent -> number of fp32 values, zeros left out: read from their bits, ten times as fast as `frexp`."""
    bits = values.view(torch.int32)
    fields = torch.bincount((bits >> 23) & 0xFF, minlength=256).tolist()
    found = {field - 127: count for field, count in enumerate(fields) if count and field}
    if fields[0]:  # zeros and subnormal numbers
        small = values[(bits & 0x7F800000) == 0]
        small = small[small != 0]
        if small.numel():
            for e, n in _wide_exponents(small.double()).items():
                found[e] = found.get(e, 0) + n
    return found


def _wide_exponents(values: torch.Tensor) -> dict[int, int]:
    """The same for fp64 values."""
    _, exponents = torch.frexp(values)
    exponents = torch.where(torch.isfinite(values), exponents - 1, 128)[values != 0]
    if not exponents.numel():
        return {}
    lowest = int(exponents.min())
    return {lowest + e: n for e, n in enumerate(torch.bincount(exponents - lowest).tolist()) if n}


def census_by_module(grads: Iterable[tuple[str, torch.Tensor]], scale: float = 1.0) -> Census:
    """`census_of` gradients that come with their parameters' names, and the exponents of each module."""
    total = Census({}, 0, 0.0, 0.0)
    modules: dict[str, GradientExponents] = {}
    for name, grad in grads:
        one = census_of([grad], scale)
        amax = _larger(total.amax, one.amax)
        module = name.rpartition(".")[0] or name
        tensors = (*total.tensors, *(replace(t, module=module) for t in one.tensors))
        total = Census(_sum(total.counts, one.counts), total.zeros + one.zeros, math.hypot(total.norm, one.norm), amax, tensors)
        before = modules.get(module, GradientExponents(name=module, zeros=0, counts={}))
        modules[module] = GradientExponents(name=module, zeros=before.zeros + one.zeros, counts=_sum(before.counts, one.counts))
    return replace(total, modules=tuple(modules.values()))


def _larger(a: float, b: float) -> float:
    """The larger of two magnitudes; NaN when one of them is NaN, which `max` may lose."""
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def _sum(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    return {exponent: a.get(exponent, 0) + b.get(exponent, 0) for exponent in sorted({*a, *b})}


def window(census: Census, *, used: float | None) -> LossScaleWindow | None:
    """The loss scales that work, or None for gradients that are all zero or not finite.

    Args:
        census: of the true gradients (computed in fp32).
        used: the scale in use.
    """
    top = census.amax
    if not census.counts or not math.isfinite(top) or top <= 0:
        return None
    bounds = GradientExponents(name="all", zeros=census.zeros, counts=census.counts).scale_window()
    if bounds is None:
        return None
    high = 2.0 ** math.floor(math.log2(FP16.max / top))
    return LossScaleWindow(low=bounds[0], high=high, used=used)
