"""Strict JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.core.finding import Severity
from mpdoctor.core.jsonable import jsonable, number, to_json


@dataclass(frozen=True)
class Pair:
    left: object
    right: object


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


TEXT = st.text(st.characters(exclude_categories=()))

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=12,
)


@given(plain)
def test_any_plain_value_becomes_strict_json(value: object) -> None:
    text = to_json(value)
    assert json.loads(text.encode("utf-8"), parse_constant=refuse) == jsonable(value)


@given(st.floats())
def test_a_number_survives_the_round_trip(value: float) -> None:
    back = number(json.loads(to_json(value)))
    assert back == value or (math.isnan(back) and math.isnan(value))


def test_known_types_have_a_plain_form() -> None:
    value = Pair(left={"s": Severity.ERROR, "p": PurePosixPath("a/b"), 3: {2, 1}}, right=(math.inf, -math.inf, math.nan))
    assert jsonable(value) == {"left": {"s": "error", "p": "a/b", "3": [1, 2]}, "right": ["inf", "-inf", "nan"]}


def test_booleans_stay_booleans() -> None:
    assert to_json([True, 1, None], indent=None) == "[true, 1, null]"


def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON form for object"):
        jsonable(object())
