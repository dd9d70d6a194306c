"""Numbers as a reader wants them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.report.numbers import count, dtype, number, plain, sparkline


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (65536.0, "65536"),
        (1e-4, "0.0001"),
        (3.14159265, "3.142"),
        (1.5e7, "1.5e+07"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (7, "7"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_short_dtypes() -> None:
    assert [dtype(name) for name in ("torch.float16", "bfloat16", "int64", None)] == ["fp16", "bf16", "int64", ""]


def test_counts() -> None:
    assert (count(1, "error"), count(2, "error"), count(0, "error")) == ("1 error", "2 errors", "0 errors")


def test_plain_values() -> None:
    assert plain({"a_b": True, "c": [1, 2.5, None]}) == "a b yes · c 1, 2.5, –"
    assert plain(list(range(9))) == "0, 1, 2, 3, 4, 5 and 3 more"


def test_a_curve_rises() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 20) == "▁▂▃▄▅▆▇█"


def test_a_constant_curve_is_flat() -> None:
    assert len(set(sparkline([5.0, 5.0, 5.0], 20))) == 1


def test_a_wide_range_is_logarithmic() -> None:
    assert sparkline([1, 10, 100, 1000], 20) == "▁▃▆█"


def test_what_is_not_finite_or_missing_is_marked() -> None:
    assert sparkline([1, None, math.nan, 2], 20) == "▁ ✗█"


def test_no_spike_is_lost_in_a_long_curve() -> None:
    values: list[float | None] = [1.0] * 1000
    values[500] = 2.0
    values[700] = math.inf
    curve = sparkline(values, 40)
    assert len(curve) == 40
    assert (curve.count("█"), curve.count("✗")) == (1, 1)


@given(st.lists(st.none() | st.floats(), max_size=100), st.integers(1, 50))
def test_any_values_make_a_curve(values: list[float | None], width: int) -> None:
    assert len(sparkline(values, width)) == min(len(values), width)
