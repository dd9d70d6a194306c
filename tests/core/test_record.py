"""The vocabulary's `dataclass` behaves as the standard library's."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import Generic, TypeVar

import pytest

from mpdoctor.core.record import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Only by name."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Placed(Generic[T]):
    """By position, generic."""

    value: T
    reason: str | None = None


@dataclass
class Open:
    """Not frozen."""

    x: int = 0
    y: int = 1

    def __post_init__(self) -> None:
        self.y += self.x


@dataclass(frozen=True)
class Heir(Placed[int]):
    """Inherits fields."""

    extra: float = 2.0


def test_fields_come_from_defaults_factories_and_arguments():
    first, second = Named(a=1), Named(a=1)
    assert (first.a, first.b, first.c) == (1, "b", [])
    assert first.c is not second.c
    assert Placed("x", "why").reason == "why"
    assert Placed(value=3).value == 3
    assert Open(2).y == 3
    assert (Heir(1).value, Heir(1, "r", 3.0).extra) == (1, 3.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Named(), "missing required arguments: a"),
        (lambda: Named(1), "takes 1 positional"),
        (lambda: Named(a=1, nonsense=2), "unexpected keyword argument 'nonsense'"),
        (lambda: Placed(1, value=2), "multiple values for argument 'value'"),
        (lambda: Placed(1, "r", 3), "takes 3 positional"),
    ],
)
def test_wrong_arguments_are_told_as_by_a_function(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_frozen_classes_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Named(a=1).a = 2
    with pytest.raises(FrozenInstanceError):
        del Named(a=1).a
    one = Open()
    one.x = 5
    assert one.x == 5


def test_equality_and_hash_go_by_class_and_fields():
    assert Placed(1) == Placed(1) != Placed(2)
    assert Placed(1) != Heir(1)
    assert len({Placed(1), Placed(1), Placed(2)}) == 2
    assert Open() == Open()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Named(a=1))  # holds a list, as with the standard one


def test_repr_reads_like_the_call():
    assert repr(Placed(1, "r")) == "Placed(value=1, reason='r')"


def test_the_tools_of_dataclasses_work():
    one = Named(a=1, c=[1])
    assert is_dataclass(one)
    assert [f.name for f in fields(one)] == ["a", "b", "c"]
    assert replace(one, a=2) == Named(a=2, c=[1])
    assert asdict(one) == {"a": 1, "b": "b", "c": [1]}
    assert copy.deepcopy(one) == one and copy.deepcopy(one).c is not one.c
    assert pickle.loads(pickle.dumps(one)) == one


def test_patterns_match_by_position_and_name():
    match Placed(1, "r"):
        case Placed(value, reason):
            assert (value, reason) == (1, "r")
    match Named(a=1):
        case Named(a=a):
            assert a == 1


def test_equality_can_be_left_out():
    @dataclass(frozen=True, eq=False, repr=False)
    class Identity:
        """By identity."""

        x: int

    assert Identity(1) != Identity(1)
    assert len({Identity(1), Identity(1)}) == 2
    assert "Identity object" in repr(Identity(1))


def test_every_frozen_class_of_the_standard_library_would_agree():
    standard = dataclasses.make_dataclass("Standard", [("value", int), ("reason", str, None)], frozen=True)
    assert [f.name for f in fields(standard)] == [f.name for f in fields(Placed)]
    assert repr(standard(1)).replace("Standard", "Placed") == repr(Placed(1))
