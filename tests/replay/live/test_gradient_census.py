"""Gradients by binary exponent."""

from __future__ import annotations

import math

import pytest
import torch

from mpdoctor.replay.live.gradient_census import census_by_module, census_of, window

pytestmark = pytest.mark.torch

GRADS = [
    ("net.0.weight", torch.tensor([0.0, 1.0, 1.5, -2.0])),
    ("net.0.bias", torch.tensor([3.0, 0.0])),
    ("head.weight", torch.tensor([2.0**-20])),
    ("scale", torch.tensor([0.25])),
]


def test_counts_are_by_binary_exponent() -> None:
    census = census_of([grad for _, grad in GRADS])
    assert census.counts == {0: 2, 1: 2, -20: 1, -2: 1}
    assert (census.zeros, census.elements, census.amax) == (2, 8, 3.0)


def test_modules_add_up_to_the_whole() -> None:
    whole, named = census_of([grad for _, grad in GRADS]), census_by_module(GRADS)
    assert (named.counts, named.zeros, named.amax, [t.nonzero for t in named.tensors]) == (
        whole.counts,
        whole.zeros,
        whole.amax,
        [t.nonzero for t in whole.tensors],
    )
    assert named.norm == pytest.approx(whole.norm)
    assert {m.name: (m.zeros, m.counts) for m in named.modules} == {"net.0": (2, {0: 2, 1: 2}), "head": (0, {-20: 1}), "scale": (0, {-2: 1})}


def test_a_scale_is_divided_out() -> None:
    scaled = [(name, grad * 1024) for name, grad in GRADS]
    assert census_by_module(scaled, 1024.0).counts == census_by_module(GRADS).counts


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_leaves_no_window(bad: float) -> None:
    census = census_by_module([*GRADS, ("tail.weight", torch.tensor([bad])), ("end.weight", torch.tensor([1.0]))])
    assert not math.isfinite(census.amax)
    assert window(census, used=1.0) is None
