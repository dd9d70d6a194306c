"""Bit layouts of the number formats that tensors are stored in, for judging values as integers.

In sign-magnitude formats the magnitude bits sort like the magnitudes, infinities above all numbers and
NaN above infinity. So two integer reductions (signed maximum, unsigned maximum) give the largest
magnitude and tell whether anything is non-finite, for every format and without converting a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A stored floating-point format.

    Attributes:
        dtype: torch's name without prefix.
        bits: size of one value.
        exponent_bits: width of the exponent field.
        significand_bits: stored bits of the significand.
        bias: exponent bias.
        nonfinite_from: smallest magnitude pattern that is no number (infinity, or the first NaN).
        infinity: magnitude pattern of infinity; None for formats without one.
    """

    dtype: str
    bits: int
    exponent_bits: int
    significand_bits: int
    bias: int
    nonfinite_from: int
    infinity: int | None

    @property
    def magnitude_mask(self) -> int:
        """All bits but the sign."""
        return (1 << (self.bits - 1)) - 1

    @property
    def signed(self) -> str:
        """Type string of numpy for the signed integers of this size."""
        return f"<i{self.bits // 8}"

    @property
    def unsigned(self) -> str:
        """Type string of numpy for the unsigned integers of this size."""
        return f"<u{self.bits // 8}"

    def value(self, magnitude: int) -> float:
        """The number that a finite magnitude pattern stands for."""
        exponent, significand = magnitude >> self.significand_bits, magnitude & ((1 << self.significand_bits) - 1)
        if exponent == 0:
            return float(significand * 2.0 ** (1 - self.bias - self.significand_bits))
        return float((1 + significand * 2.0**-self.significand_bits) * 2.0 ** (exponent - self.bias))

    def pattern_from(self, value: float) -> int:
        """The smallest magnitude pattern whose number is at least `value` (`nonfinite_from` when there is none)."""
        low, high = 0, self.nonfinite_from
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.value(middle) >= value else (middle + 1, high)
        return low


def _ieee(dtype: str, exponent_bits: int, significand_bits: int) -> Layout:
    infinity = ((1 << exponent_bits) - 1) << significand_bits
    return Layout(
        dtype=dtype, bits=1 + exponent_bits + significand_bits, exponent_bits=exponent_bits, significand_bits=significand_bits,
        bias=(1 << (exponent_bits - 1)) - 1, nonfinite_from=infinity, infinity=infinity,
    )  # fmt: skip


LAYOUTS: Mapping[str, Layout] = {
    layout.dtype: layout
    for layout in (
        _ieee("float64", 11, 52),
        _ieee("float32", 8, 23),
        _ieee("float16", 5, 10),
        _ieee("bfloat16", 8, 7),
        _ieee("float8_e5m2", 5, 2),
        # OCP e4m3 has no infinity: only the pattern of all ones is NaN.
        Layout(dtype="float8_e4m3fn", bits=8, exponent_bits=4, significand_bits=3, bias=7, nonfinite_from=0x7F, infinity=None),
    )
}
COMPONENT: Mapping[str, str] = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}
"""Formats made of two numbers of another format."""

FP16_INFINITE_FROM = 65520.0
"""Smallest magnitude that becomes infinity in fp16: half-way between 65504, its largest number, and 65536."""

FP16_ZERO_BELOW_EXPONENT = -25
"""Magnitudes below 2^-25 become zero in fp16: half of its smallest number, 2^-24."""


def layout_of(dtype: str) -> Layout | None:
    """The layout of a dtype's values (of its parts, for complex numbers); None for integers and unknown formats."""
    return LAYOUTS.get(COMPONENT.get(dtype, dtype))
