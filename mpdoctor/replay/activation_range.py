"""What one forward pass in a wide precision makes, held against fp16: plain data, and the rules over it. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpdoctor.core import rule

_MODULES = 1000
"""Modules listed at most, the largest values first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRange:
    """The values that one module makes, and those that its matrix product reads.

    Attributes:
        module: dotted name.
        values: how many were looked at, the finite ones.
        infinite: how many of them are infinite in fp16 (65520 and more).
        zero: how many of them are zero in fp16 and not here (2.98e-8 and less).
        amax: largest magnitude.
        product: whether the module is a matrix product or convolution: autocast casts what these read and write to fp16, and little else.
    """

    module: str
    values: int
    infinite: int
    zero: int
    amax: float
    product: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRange:
    """The activations of one batch, module by module, in `dtype`; the weights are 16 bits themselves where `pure` is set."""

    dtype: str
    modules: tuple[ModuleRange, ...]
    pure: bool = False

    @property
    def cast(self) -> tuple[ModuleRange, ...]:
        """Modules whose values a run in fp16 holds in fp16: all with 16-bit weights, matrix products under autocast."""
        return tuple(m for m in self.modules if self.pure or m.product)

    @property
    def beyond(self) -> tuple[ModuleRange, ...]:
        """Those of them with values that fp16 cannot hold, the largest first."""
        return tuple(sorted((m for m in self.cast if m.infinite), key=lambda m: -m.amax))


def judge_activations(activations: ActivationRange) -> rule.RuleRun:
    """Run all rules over the activations of a forward pass."""
    return rule.run(rule.load("mpdoctor.replay.detectors.range"), activations, lambda _activations, _name: True)


def activation_measurements(activations: ActivationRange | None) -> dict[str, Any]:
    """The activations in a report; empty where nothing was measured.

    `activations_in_fp16` is a sentence. `activation_ranges` is a list of dictionaries: module, product, values, amax, and the shares
    infinite and zero (0 to 1).
    """
    if activations is None or not activations.cast:
        return {}
    ranked = sorted(activations.modules, key=lambda m: -m.amax)[:_MODULES]
    return {
        "activations_in_fp16": _sentence(activations),
        "activation_ranges": [
            {
                "module": m.module,
                "product": m.product,
                "values": m.values,
                "amax": m.amax,
                "infinite": m.infinite / m.values if m.values else 0.0,
                "zero": m.zero / m.values if m.values else 0.0,
            }
            for m in ranked
        ],
    }


def _sentence(activations: ActivationRange) -> str:
    largest = max(activations.cast, key=lambda m: m.amax)
    values, zero = sum(m.values for m in activations.cast), sum(m.zero for m in activations.cast)
    beyond = activations.beyond
    above = f"{sum(m.infinite for m in beyond):,} infinite in {len(beyond)} modules" if beyond else "none infinite"
    flushed = f"{zero / values:.2g} of them zero" if zero else "none flushed to zero"
    return f"largest {largest.amax:.4g} ({largest.module}), {above}, {flushed}; by one forward pass in {activations.dtype}"
