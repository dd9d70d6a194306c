"""Facts about the number formats that training uses.

Every number follows from the bit layout (exponent bits, stored significand bits, bias) by IEEE 754's
rules; e4m3 is the exception ("fn": no infinity, the top exponent holds finite numbers too; OCP 8-bit
Floating Point Specification, revision 1.0).
"""

from __future__ import annotations

import math
import struct

from mpdoctor.core.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatFormat:
    """A binary floating-point format.

    Attributes:
        name: short name (`fp16`).
        aliases: other names, among them torch's dtype name where there is one.
        bits: storage size in bits.
        exponent_bits: width of the exponent.
        significand_bits: stored bits of the significand (without the implicit leading bit).
        has_infinity: False for e4m3, whose overflow is NaN or saturates.
        purpose: what it is used for, and what to watch.
    """

    name: str
    aliases: tuple[str, ...]
    bits: int
    exponent_bits: int
    significand_bits: int
    has_infinity: bool
    purpose: str

    @property
    def bias(self) -> int:
        """Exponent bias: half the exponent range."""
        return int(2 ** (self.exponent_bits - 1)) - 1

    @property
    def max(self) -> float:
        """Largest finite value."""
        if self.has_infinity:
            return float((2 - 2.0**-self.significand_bits) * 2.0**self.bias)
        # "fn" formats use the all-ones exponent for numbers; only significand all-ones is NaN.
        return float((2 - 2.0 ** (1 - self.significand_bits)) * 2.0 ** (self.bias + 1))

    @property
    def smallest_normal(self) -> float:
        """Smallest positive value with full precision."""
        return float(2.0 ** (1 - self.bias))

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive value; half of it and below rounds to zero."""
        return float(2.0 ** (1 - self.bias - self.significand_bits))

    @property
    def spacing_at_one(self) -> float:
        """Distance from 1 to the next larger number."""
        return float(2.0**-self.significand_bits)

    def spacing(self, value: float) -> float:
        """Distance between neighbouring numbers at `value` (a finite number)."""
        magnitude = abs(value)
        if magnitude < self.smallest_normal:
            return self.smallest_subnormal
        exponent = struct.unpack("<Q", struct.pack("<d", magnitude))[0] >> 52 & 0x7FF
        return float(2.0 ** (exponent - 1023 - self.significand_bits))

    def round(self, value: float) -> float:
        """The number of this format nearest to `value`, ties to even.

        Beyond the largest number: infinity, or NaN in a format without infinity (where saturating conversions give the largest number).
        """
        if not math.isfinite(value):
            return value
        spacing = self.spacing(min(abs(value), self.max))
        rounded = round(value / spacing) * spacing
        if abs(rounded) > self.max:
            return math.copysign(math.inf, value) if self.has_infinity else math.nan
        return math.copysign(rounded, value)


FORMATS: tuple[FloatFormat, ...] = (
    FloatFormat(
        name="fp32",
        aliases=("float32", "float", "single"),
        bits=32,
        exponent_bits=8,
        significand_bits=23,
        has_infinity=True,
        purpose="Master weights, optimizer state, reductions, losses. The reference that the others are compared with.",
    ),
    FloatFormat(
        name="tf32",
        aliases=("tensorfloat32",),
        bits=32,
        exponent_bits=8,
        significand_bits=10,
        has_infinity=True,
        purpose="How tensor cores (compute capability 8.0 and later) read fp32 operands of matrix products when TF32 is allowed: "
        "fp32's range, fp16's precision, stored in 32 bits. Needs no loss scaling.",
    ),
    FloatFormat(
        name="bf16",
        aliases=("bfloat16",),
        bits=16,
        exponent_bits=8,
        significand_bits=7,
        has_infinity=True,
        purpose="Mixed-precision training without loss scaling: fp32's range with 8 significant bits. Updates smaller than about 1/256 "
        "of a weight are lost unless fp32 master weights take them. Native from compute capability 8.0 (Ampere).",
    ),
    FloatFormat(
        name="fp16",
        aliases=("float16", "half"),
        bits=16,
        exponent_bits=5,
        significand_bits=10,
        has_infinity=True,
        purpose="Mixed-precision training on GPUs without native bf16 (V100, T4). More precise than bf16 but narrow: above 65504 is inf, "
        "gradients below 6e-8 become 0, so it needs (dynamic) loss scaling.",
    ),
    FloatFormat(
        name="fp8-e4m3",
        aliases=("e4m3", "float8_e4m3fn", "fp8_e4m3", "fp8"),
        bits=8,
        exponent_bits=4,
        significand_bits=3,
        has_infinity=False,
        purpose="Weights and activations of matrix products with a scale per tensor or block (compute capability 8.9 and later). "
        "No infinity: overflow saturates or becomes NaN.",
    ),
    FloatFormat(
        name="fp8-e5m2",
        aliases=("e5m2", "float8_e5m2", "fp8_e5m2"),
        bits=8,
        exponent_bits=5,
        significand_bits=2,
        has_infinity=True,
        purpose="Gradients of fp8 matrix products: fp16's range with 3 significant bits, with a scale per tensor or block.",
    ),
)


def find_format(name: str) -> FloatFormat | None:
    """The format called `name` (any alias, `torch.` prefix and case ignored), or None."""
    wanted = name.lower().removeprefix("torch.")
    return next((f for f in FORMATS if wanted == f.name or wanted in f.aliases), None)


FP32, TF32, BF16, FP16, FP8_E4M3, FP8_E5M2 = FORMATS
