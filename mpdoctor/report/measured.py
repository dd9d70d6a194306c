"""Measurements that have a form of their own in reports, by their name in `Report.measurements`.

`loss_scale_window`
    `{"low": 16.0, "high": 32768.0, "used": 65536.0}`: scales under which fp16 holds the gradients, and the one in use (or None).
`gradient_exponents`
    `[{"name": "all", "zeros": 3, "counts": {"-20": 17, ...}}, ...]`: elements of the true gradients by binary exponent, in all and by layer.
`module_amax`
    `[{"step": 3, "phase": "forward", "module": "blocks.0", "dtype": "float16", "amax": 812.0, "nonfinite": 0}, ...]`
`flops_by_dtype`
    `{"float16": 1.2e9, "float32": 3e7}`: matrix-product and convolution FLOPs by dtype of the operands.

Any other measurement is shown as it is. A known one that does not have its form is shown as it is too: a report never fails for its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpdoctor.core.report import Report
from mpdoctor.report.numbers import dtype, plain, sparkline, words

SPECIAL = ("loss_scale_window", "gradient_exponents", "module_amax", "flops_by_dtype")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleAmax:
    """Largest magnitude that a module made in one phase of one step."""

    step: int
    phase: str
    module: str
    dtype: str
    amax: float
    nonfinite: int


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
    """Share of the FLOPs by dtype, largest first; empty when they were not measured."""
    measured = report.measurements.get("flops_by_dtype")
    if not isinstance(measured, Mapping):
        return {}
    if not all(isinstance(value, int | float) and math.isfinite(value) and value >= 0 for value in measured.values()):
        return {}
    numbers = {str(name): float(value) for name, value in measured.items() if value > 0}
    total = sum(numbers.values())
    return {name: numbers[name] / total for name in sorted(numbers, key=lambda name: -numbers[name])}


def others(report: Report) -> dict[str, Any]:
    """Measurements without a form of their own."""
    shown = {
        "loss_scale_window": window(report),
        "gradient_exponents": exponents(report),
        "module_amax": module_amax(report),
        "flops_by_dtype": flops(report),
    }
    return {name: value for name, value in report.measurements.items() if not shown.get(name)}


def in_words(report: Report) -> list[tuple[str, str]]:
    """Every measurement as a name and a line of text; the magnitudes of modules, which are many, are left to JSON and HTML."""
    lines = []
    if scales := window(report):
        lines.append(("loss scales that work", scales.sentence))
    if shares := flops(report):
        lines.append(("precision that ran", ", ".join(f"{share:.1%} {dtype(name)}" for name, share in shares.items())))
    if layers := exponents(report):
        lines.append(("gradient exponents", _curve(layers[0])))
    return lines + [(words(str(name)), plain(value)) for name, value in others(report).items()]


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
