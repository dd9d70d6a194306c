"""Number formats against the arithmetic that they stand for."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.core.numerics import BF16, FORMATS, FP8_E4M3, FP8_E5M2, FP16, FP32, TF32, FloatFormat, find_format


def as_fp16(bits: int) -> float:
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def as_fp32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def test_fp16_agrees_with_its_bit_patterns() -> None:
    assert FP16.max == as_fp16(0x7BFF) == 65504
    assert FP16.smallest_normal == as_fp16(0x0400) == 2.0**-14
    assert FP16.smallest_subnormal == as_fp16(0x0001) == 2.0**-24
    assert FP16.spacing_at_one == as_fp16(0x3C01) - 1


def test_fp32_agrees_with_its_bit_patterns() -> None:
    assert FP32.max == as_fp32(0x7F7FFFFF)
    assert FP32.smallest_normal == as_fp32(0x00800000)
    assert FP32.smallest_subnormal == as_fp32(0x00000001)
    assert FP32.spacing_at_one == as_fp32(0x3F800001) - 1


def test_bf16_is_the_upper_half_of_fp32() -> None:
    assert BF16.max == as_fp32(0x7F7F0000)
    assert BF16.smallest_normal == FP32.smallest_normal
    assert BF16.smallest_subnormal == as_fp32(0x00010000)
    assert BF16.spacing_at_one == as_fp32(0x3F810000) - 1


def test_tf32_has_the_range_of_fp32_and_the_precision_of_fp16() -> None:
    assert TF32.smallest_normal == FP32.smallest_normal
    assert TF32.spacing_at_one == FP16.spacing_at_one


def test_fp8_follows_the_ocp_specification() -> None:
    assert (FP8_E4M3.max, FP8_E4M3.smallest_normal, FP8_E4M3.smallest_subnormal) == (448, 2.0**-6, 2.0**-9)
    assert (FP8_E5M2.max, FP8_E5M2.smallest_normal, FP8_E5M2.smallest_subnormal) == (57344, 2.0**-14, 2.0**-16)


@given(st.integers(min_value=0, max_value=0x7BFE))
def test_spacing_is_the_distance_to_the_next_fp16_number(bits: int) -> None:
    assert FP16.spacing(as_fp16(bits)) == as_fp16(bits + 1) - as_fp16(bits)
    assert FP16.spacing(-as_fp16(bits)) == FP16.spacing(as_fp16(bits))


@pytest.mark.parametrize("number_format", FORMATS, ids=lambda f: f.name)
def test_every_name_finds_its_format(number_format: FloatFormat) -> None:
    for name in (number_format.name, *number_format.aliases):
        assert find_format(name) is number_format
        assert find_format(f"torch.{name}".upper()) is None or find_format(name.upper()) is number_format
    assert number_format.bits >= 1 + number_format.exponent_bits + number_format.significand_bits


def test_torch_names_are_found() -> None:
    assert find_format("torch.bfloat16") is BF16
    assert find_format("int8") is None


def test_formats_are_ordered_numbers() -> None:
    for number_format in FORMATS:
        assert 0 < number_format.smallest_subnormal < number_format.smallest_normal < 1 < number_format.max < math.inf


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_to_fp16_agrees_with_the_machine(value: float) -> None:
    try:
        expected = struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        expected = math.copysign(math.inf, value)
    assert FP16.round(value) == expected
    assert math.copysign(1, FP16.round(value)) == math.copysign(1, expected)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_numbers_of_a_format_round_to_themselves(value: float) -> None:
    assert FP32.round(value) == value


def test_rounding_at_the_ends() -> None:
    assert BF16.round(1 + 2.0**-8) == 1.0
    assert BF16.round(3.4e38) == math.inf
    assert FP16.round(65519.99) == 65504
    assert FP16.round(65520) == math.inf
    assert FP16.round(1e-8) == 0
    assert math.isnan(FP8_E4M3.round(500))
    assert FP8_E4M3.round(449) == 448
