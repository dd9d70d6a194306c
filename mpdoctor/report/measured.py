"""Measurements that have a form of their own in reports, by their name in `Report.measurements`.

`loss_scale_window`
    `{"low": 16.0, "high": 32768.0, "used": 65536.0}`: scales under which fp16 holds the gradients, and the one in use (or None).
`gradient_exponents`
    `[{"name": "all", "zeros": 3, "counts": {"-20": 17, ...}}, ...]`: elements of the true gradients by binary exponent, in all and by layer.
`module_amax`
    `[{"module": "blocks.0", "phase": "forward", "dtype": "float16", "amax": 812.0, "nonfinite": 0, "step": 3}, ...]`; `step` may be missing.
`flops_share_by_dtype`
    `{"float16": 0.97, "float32": 0.03}`: matrix-product and convolution FLOPs by dtype of the operands, as shares of all.
`gradients`
    `[{"name": "head.weight", "dtype": "float32", "grad_norm": 0.3, "grad_amax": 0.01, "grad_zero_share": 0.0, "changed_share": 1.0}, ...]`
`stored_modules`
    `[{"module": "blocks.0.wo", "dtype": "float32", "values": 4096, "nonfinite": 0, "amax": 1.2, "zeros": 0.0, "unmoved": 0.1}, ...]`:
    the checkpoint's weights by module, the worst first; like the magnitudes of modules they are left to JSON.
`activation_ranges`
    `[{"module": "blocks.0.wo", "product": true, "values": 4096, "amax": 812.0, "infinite": 0.0, "zero": 0.01}, ...]`: activations of one forward
    pass in a wide precision by module, as shares that fp16 makes infinite or zero; left to JSON too.

Any other measurement is shown as it is. A known one that does not have its form is shown as it is too: a report never fails for its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mpdoctor.core.record import dataclass
from mpdoctor.core.report import Report
from mpdoctor.report.numbers import dtype, plain, sparkline, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Loss scales that work. `low` above `high`: none does."""

    low: float
    high: float
    used: float | None

    @property
    def sentence(self) -> str:
        """The window in words."""
        if self.low > self.high:
            return "empty: fp16 cannot hold these gradients at any loss scale"
        text = f"{_power(self.low)} to {_power(self.high)}"
        if self.used is None:
            return text
        place = ", too high" if self.used > self.high else ", too low" if self.used < self.low else ""
        return f"{text}; in use: {_power(self.used)}{place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponents:
    """Gradient elements of one layer (or all) by binary exponent."""

    name: str
    zeros: int
    counts: dict[int, int]

    @property
    def elements(self) -> int:
        """All elements, zeros included."""
        return self.zeros + sum(self.counts.values())

    def below(self, exponent: float) -> float:
        """Share of the elements that are not zero but smaller than 2**exponent."""
        return sum(n for e, n in self.counts.items() if e < exponent) / self.elements if self.elements else 0.0

    def above(self, exponent: float) -> float:
        """Share of the elements that are larger than 2**exponent."""
        return sum(n for e, n in self.counts.items() if e > exponent) / self.elements if self.elements else 0.0

    def outside(self, low: float, high: float) -> float:
        """Share of the elements that are not zero and lie below 2**low or above 2**high."""
        return self.below(low) + self.above(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleAmax:
    """Largest magnitude that a module made in one phase of one step."""

    step: int
    phase: str
    module: str
    dtype: str
    amax: float
    nonfinite: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """The gradient of one parameter. None: not told; a norm of None: the parameter has no gradient."""

    name: str
    dtype: str
    norm: float | None
    amax: float | None
    zero_share: float | None
    changed_share: float | None


def window(report: Report) -> Window | None:
    """The loss-scale window, when it was measured."""
    match report.measurements.get("loss_scale_window"):
        case {"low": float() | int() as low, "high": float() | int() as high, **rest}:
            used = rest.get("used")
            return Window(low=float(low), high=float(high), used=float(used) if isinstance(used, int | float) else None)
    return None


def exponents(report: Report) -> list[Exponents]:
    """Gradient exponents, in all and by layer."""
    found = [_exponents(entry) for entry in _entries(report, "gradient_exponents")]
    return [entry for entry in found if entry and entry.elements]


def _exponents(entry: Any) -> Exponents | None:
    try:
        counts = {int(exponent): int(elements) for exponent, elements in entry["counts"].items()}
        return Exponents(name=str(entry["name"]), zeros=int(entry.get("zeros", 0)), counts=counts)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def module_amax(report: Report) -> list[ModuleAmax]:
    """Largest magnitudes by module, phase and step."""
    return [value for entry in _entries(report, "module_amax") if (value := _module_amax(entry))]


def _module_amax(entry: Any) -> ModuleAmax | None:
    try:
        return ModuleAmax(
            step=int(entry.get("step", 0)),
            phase=str(entry.get("phase", "forward")),
            module=str(entry["module"]),
            dtype=str(entry.get("dtype", "")),
            amax=float(entry["amax"]),
            nonfinite=int(entry.get("nonfinite", 0)),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def flops(report: Report) -> dict[str, float]:
    """Share of the FLOPs by dtype, largest first, zeros left out; empty when they were not measured."""
    measured = report.measurements.get("flops_share_by_dtype")
    if not isinstance(measured, Mapping):
        return {}
    if not all(isinstance(value, int | float) and math.isfinite(value) and value >= 0 for value in measured.values()):
        return {}
    numbers = {str(name): float(value) for name, value in measured.items() if value > 0}
    total = sum(numbers.values())
    return {name: numbers[name] / total for name in sorted(numbers, key=lambda name: -numbers[name])}


def gradients(report: Report) -> list[Gradient]:
    """Gradient of each parameter in the traced step, in the model's order."""
    return [gradient for entry in _entries(report, "gradients") if (gradient := _gradient(entry))]


def _gradient(entry: Any) -> Gradient | None:
    def number(name: str) -> float | None:
        value = entry.get(name)
        return None if value is None else float(value)

    try:
        return Gradient(
            name=str(entry["name"]),
            dtype=str(entry.get("dtype", "")),
            norm=number("grad_norm"),
            amax=number("grad_amax"),
            zero_share=number("grad_zero_share"),
            changed_share=number("changed_share"),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def stored_modules(report: Report) -> list[Any]:
    """The checkpoint's weights by module."""
    return [entry for entry in _entries(report, "stored_modules") if isinstance(entry, Mapping) and "module" in entry]


def activation_ranges(report: Report) -> list[Any]:
    """Activations of a forward pass by module."""
    return [entry for entry in _entries(report, "activation_ranges") if isinstance(entry, Mapping) and "module" in entry]


_FORMS: dict[str, Callable[[Report], object]] = {
    "loss_scale_window": window,
    "gradient_exponents": exponents,
    "module_amax": module_amax,
    "flops_share_by_dtype": flops,
    "gradients": gradients,
    "stored_modules": stored_modules,
    "activation_ranges": activation_ranges,
}


def others(report: Report) -> dict[str, Any]:
    """Measurements without a form of their own."""
    return {name: value for name, value in report.measurements.items() if not (name in _FORMS and _FORMS[name](report))}


def in_words(report: Report) -> list[tuple[str, str]]:
    """Every measurement as a name and a line of text; the magnitudes of modules, which are many, are left to JSON and HTML."""
    lines = []
    if scales := window(report):
        lines.append(("loss scales that work", scales.sentence))
    if shares := flops(report):
        lines.append(("precision that ran", ", ".join(f"{share:.1%} {dtype(name)}" for name, share in shares.items())))
    if layers := exponents(report):
        lines.append(("gradient exponents", _curve(layers[0])))
    if found := gradients(report):
        lines.append(("gradients", _summary(found)))
    return lines + [(words(str(name)), plain(value)) for name, value in others(report).items()]


def _summary(found: list[Gradient]) -> str:
    """All gradients in a line: how many are missing, not finite or all zero, and the extremes of the rest."""
    finite = [g for g in found if g.norm is not None and math.isfinite(g.norm) and g.norm > 0]
    parts = [f"{len(found)} parameters"]
    for text, number_of in (
        ("without a gradient", sum(g.norm is None for g in found)),
        ("not finite", sum(g.norm is not None and not math.isfinite(g.norm) for g in found)),
        ("all zero", sum(g.norm == 0 for g in found)),
    ):
        parts += [f"{number_of} {text}"] if number_of else []
    if finite:
        largest, smallest = max(finite, key=_norm), min(finite, key=_norm)
        parts.append(f"norms from {smallest.norm:.2g} ({smallest.name}) to {largest.norm:.2g} ({largest.name})")
    return ", ".join(parts)


def _norm(gradient: Gradient) -> float:
    return gradient.norm or 0.0


def _curve(layer: Exponents) -> str:
    """The exponents as a small curve between the smallest and the largest."""
    if not layer.counts:
        return "all gradients are exactly zero"
    first, last = min(layer.counts), max(layer.counts)
    curve = sparkline([math.log1p(layer.counts.get(e, 0)) for e in range(first, last + 1)], 40)
    zero = f", {layer.zeros / layer.elements:.1%} exactly zero" if layer.zeros else ""
    return f"2^{first} {curve} 2^{last}{zero}"


def _entries(report: Report, name: str) -> list[Any]:
    value = report.measurements.get(name)
    return list(value) if isinstance(value, list | tuple) else []


def _power(value: float) -> str:
    """A power of two with its exponent (`2^16 = 65536`), any other number as it is."""
    if value > 0 and math.isfinite(value) and math.log2(value) == int(math.log2(value)):
        exponent = int(math.log2(value))
        return f"2^{exponent}" + (f" ({int(value)})" if 1 <= exponent <= 24 else "")
    return f"{value:.4g}"
