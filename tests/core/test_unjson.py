"""Dataclasses through strict JSON and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.core.jsonable import to_json
from mpdoctor.core.unjson import Mismatch, from_jsonable


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Leaf:
    name: str
    size: float | None = None


@dataclass(frozen=True)
class Tree:
    count: int
    leaves: tuple[Leaf, ...] = ()
    pairs: tuple[tuple[str, int], ...] = ()
    by_number: dict[int, Leaf] = field(default_factory=dict)
    colour: Colour = Colour.RED
    here: bool = False


LEAVES = st.builds(Leaf, name=st.text(st.characters(exclude_categories=("Cs",))), size=st.none() | st.floats(allow_nan=False))
TREES = st.builds(
    Tree,
    count=st.integers(),
    leaves=st.lists(LEAVES, max_size=3).map(tuple),
    pairs=st.lists(st.tuples(st.text("abc"), st.integers()), max_size=3).map(tuple),
    by_number=st.dictionaries(st.integers(), LEAVES, max_size=3),
    colour=st.sampled_from(Colour),
    here=st.booleans(),
)


@given(TREES)
def test_what_was_written_is_read_back(tree: Tree) -> None:
    assert from_jsonable(Tree, json.loads(to_json(tree))) == tree


def test_nan_comes_back() -> None:
    size = from_jsonable(Leaf, json.loads(to_json(Leaf("a", math.nan)))).size
    assert size is not None
    assert math.isnan(size)


def test_keys_of_a_newer_version_are_left_out_and_missing_ones_take_their_default() -> None:
    assert from_jsonable(Tree, {"count": 1, "shape": "round"}) == Tree(count=1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "the value should be Tree, not a list"),
        ({}, "the object lacks count"),
        ({"count": "1"}, "count should be int, not a text"),
        ({"count": True}, "count should be int, not a truth value"),
        ({"count": 1.5}, "count should be int, not a number"),
        ({"count": 1, "leaves": {}}, "leaves should be tuple, not an object"),
        ({"count": 1, "leaves": [{"name": "a"}, {"name": 3}]}, r"leaves\[1\].name should be str, not a number"),
        ({"count": 1, "leaves": [{"name": "a", "size": "big"}]}, r"leaves\[0\].size should be float, not a text"),
        ({"count": 1, "leaves": [{"name": "a", "size": 10**400}]}, r"leaves\[0\].size is too large"),
        ({"count": 1, "pairs": [["a"]]}, r"pairs\[0\] should hold 2 values, not 1"),
        ({"count": 1, "by_number": {"one": {"name": "a"}}}, "by_number has the key 'one', which is no int"),
        ({"count": 1, "colour": "green"}, "colour is 'green', not one of red, blue"),
        ({"count": 1, "colour": ["red"]}, "colour is"),
        ({"count": 1, "here": 1}, "here should be bool, not a number"),
    ],
)
def test_a_value_of_another_type_is_told_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(Mismatch, match=words):
        from_jsonable(Tree, value)
