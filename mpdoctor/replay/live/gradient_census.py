"""How large a step's gradients are: exponents of the true gradients, and the loss scales that fp16 could hold them with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from mpdoctor.core.numerics import FP16
from mpdoctor.core.trace import GradientExponents, LossScaleWindow
from mpdoctor.replay.live.finiteness import readable


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
    nonzero: tuple[int, ...] = ()
    """Elements that are not zero, by tensor, in the order of the tensors."""
    modules: tuple[GradientExponents, ...] = ()
    """The same by module, where the gradients came with names."""

    def flushed_against(self, true: Census) -> float | None:
        """Share of the elements that are not zero in `true` and that are zero here; tensors that are zero in both do not count."""
        if len(self.nonzero) != len(true.nonzero) or not sum(true.nonzero):
            return None
        lost = sum(max(0, t - mine) for mine, t in zip(self.nonzero, true.nonzero, strict=True))
        return lost / sum(true.nonzero)

    @property
    def elements(self) -> int:
        """Number of gradient elements, zeros included."""
        return self.zeros + sum(self.counts.values())

    @property
    def zero_share(self) -> float:
        """Share of elements that are exactly zero."""
        return self.zeros / self.elements if self.elements else 0.0


def census_of(grads: Iterable[torch.Tensor], scale: float = 1.0) -> Census:
    """Count the exponents of gradients that carry `scale` (a power of two keeps the counts exact)."""
    counts: dict[int, int] = {}
    zeros, square, amax = 0, 0.0, 0.0
    live: list[int] = []
    for grad in grads:
        flat = readable(grad.detach())
        if flat is None:
            continue
        live.append(0)
        for chunk in flat.reshape(-1).split(1 << 18):
            values = chunk.double() / scale
            mantissa, exponent = torch.frexp(values)
            nonzero = mantissa != 0
            zeros += int((~nonzero).sum())
            live[-1] += int(nonzero.sum())
            found, number = torch.unique(exponent[nonzero], return_counts=True)
            for e, n in zip(found.tolist(), number.tolist(), strict=True):
                counts[e - 1] = counts.get(e - 1, 0) + n
            square += float((values * values).sum())
            amax = _larger(amax, float(values.abs().max())) if values.numel() else amax
    return Census(counts, zeros, math.sqrt(square) if square >= 0 else math.nan, amax, tuple(live))


def census_by_module(grads: Iterable[tuple[str, torch.Tensor]], scale: float = 1.0) -> Census:
    """`census_of` gradients that come with their parameters' names, and the exponents of each module."""
    total = Census({}, 0, 0.0, 0.0)
    modules: dict[str, GradientExponents] = {}
    for name, grad in grads:
        one = census_of([grad], scale)
        amax = _larger(total.amax, one.amax)
        total = Census(_sum(total.counts, one.counts), total.zeros + one.zeros, math.hypot(total.norm, one.norm), amax, total.nonzero + one.nonzero)
        module = name.rpartition(".")[0] or name
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
