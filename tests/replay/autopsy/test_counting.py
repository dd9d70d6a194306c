"""Counts made on bits agree with numpy and torch on values, in every stored format."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.replay.autopsy.bits import LAYOUTS, Layout
from mpdoctor.replay.autopsy.counting import Counter

DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float8_e5m2": torch.float8_e5m2,
          "float8_e4m3fn": torch.float8_e4m3fn}  # fmt: skip
FORMATS = pytest.mark.parametrize("name", list(DTYPES))


def raw(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def count(tensor: torch.Tensor, name: str, *, sample: bool = False, piece: int = 1 << 16) -> Counter:
    counter, data = Counter(LAYOUTS[name], sample=sample), raw(tensor)
    for start in range(0, len(data), piece):
        counter.add(data[start : start + piece])
    counter.finish()
    return counter


@FORMATS
def test_all_patterns_of_a_format(name: str) -> None:
    """Every bit pattern of the 8- and 16-bit formats, a random million of the others."""
    layout = LAYOUTS[name]
    if layout.bits <= 16:
        patterns = np.arange(1 << layout.bits, dtype=layout.unsigned)
    else:
        patterns = np.random.default_rng(0).integers(0, 1 << layout.bits, 1 << 20, dtype=layout.unsigned)
    tensor = torch.from_numpy(patterns.view(layout.signed).copy()).view(DTYPES[name])
    values = tensor.to(torch.float64)
    found = count(tensor, name)
    finite = values[values.isfinite()]
    assert found.nans == int(values.isnan().sum()) and found.infs == int(values.isinf().sum())
    assert found.first == int((~values.isfinite()).int().argmax())
    assert found.amax == float(finite.abs().max())
    assert found.above_fp16 == int((finite.abs() >= 65520).sum())
    assert found.zeros == int((values == 0).sum())
    smallest = 2.0 ** (1 - layout.bias)
    assert found.subnormals == int(((finite.abs() < smallest) & (finite != 0)).sum())
    assert found.zero_in_fp16() == int(((finite.abs() < 2.0**-25) & (finite != 0)).sum())


@FORMATS
@pytest.mark.parametrize("lr", [1e-6, 1e-5, 3e-4, 2.0**-10, 0.1])
def test_unmoved_values_are_those_that_adding_the_step_does_not_change(name: str, lr: float) -> None:
    tensor = (torch.randn(20_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 0.05).to(DTYPES[name])
    found = count(tensor, name)
    exact = tensor.to(torch.float64)
    # What the dtype's arithmetic does, computed exactly: round w + lr to the nearest number of the format.
    stays = sum(_rounds_to_itself(value, lr, LAYOUTS[name]) for value in exact.tolist() if value)
    assert found.unmoved(lr) == pytest.approx(stays, abs=0)


def _rounds_to_itself(value: float, lr: float, layout: Layout) -> bool:
    exponent = max(math.floor(math.log2(abs(value))), 1 - layout.bias)
    return lr < 2.0 ** (exponent - layout.significand_bits) / 2 and abs(value) >= 2.0 ** (1 - layout.bias)


def test_median_step_moves_half_of_the_values() -> None:
    tensor = torch.tensor([0.5] * 6 + [4.0] * 4, dtype=torch.bfloat16)
    found = count(tensor, "bfloat16")
    assert found.median_lr() == 2.0**-1 * 2.0**-7 / 2
    assert count(torch.zeros(8), "float32").median_lr() is None


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.floats(width=32), min_size=1, max_size=60), piece=st.sampled_from([4, 8, 20, 1 << 16]))
def test_pieces_do_not_change_the_verdict(values: list[float], piece: int) -> None:
    tensor = torch.tensor(values, dtype=torch.float32)
    found = count(tensor, "float32", piece=piece)
    bad = [i for i, v in enumerate(values) if not math.isfinite(v)]
    assert found.nans + found.infs == len(bad) and found.first == (bad[0] if bad else None)
    assert found.amax == max((abs(float(np.float32(v))) for v in values if math.isfinite(v)), default=0.0)


def test_a_sample_estimates_shares_and_keeps_maximum_and_nonfinite_exact() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(1 << 21)
    tensor[torch.rand(tensor.numel()) < 0.3] = 0
    tensor[12345], tensor[54321] = 70000.0, math.nan
    found = count(tensor, "float32", sample=True, piece=1 << 19)
    assert found.counted < tensor.numel() / 100
    assert found.zeros / found.counted == pytest.approx(0.3, abs=0.05)
    assert (found.amax, found.nans, found.first, found.above_fp16) == (70000.0, 1, 54321, 1)
