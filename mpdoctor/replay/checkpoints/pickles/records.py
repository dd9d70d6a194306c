"""Inert values: what a pickle names, never what it would build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Global:
    """A class or function that the pickle names. It was not imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class Persistent:
    """A reference to something stored outside the pickle; torch's are `('storage', type, key, location, count)`."""

    id: Any


class Record:
    """An object as the pickle describes it: what would be called, with which arguments, and the state given to it.

    Attributes:
        of: the class or function (`Global`), or whatever else the pickle would call.
        args: positional arguments of the call.
        kwargs: keyword arguments.
        state: argument of `__setstate__`, mostly the instance's `__dict__`.
        items: elements appended to it.
        pairs: keys and values set on it.
    """

    __slots__ = ("args", "items", "kwargs", "of", "pairs", "state")

    def __init__(self, of: Any, args: tuple[Any, ...], kwargs: dict[Any, Any] | None = None) -> None:
        # Empty tuples instead of containers of its own: a hostile pickle makes millions of records.
        self.of = of
        self.args = args
        self.kwargs: dict[Any, Any] | tuple[()] = kwargs or ()
        self.state: Any = None
        self.items: list[Any] | tuple[()] = ()
        self.pairs: list[tuple[Any, Any]] | tuple[()] = ()

    def add_items(self, items: list[Any]) -> None:
        """Note appended elements."""
        if not isinstance(self.items, list):
            self.items = []
        self.items.extend(items)

    def add_pair(self, key: Any, value: Any) -> None:
        """Note a key that was set."""
        if not isinstance(self.pairs, list):
            self.pairs = []
        self.pairs.append((key, value))

    @property
    def name(self) -> str:
        """Dotted name of the class, or empty."""
        return str(self.of) if isinstance(self.of, Global) else ""

    def __repr__(self) -> str:
        return f"<Record {self.name or type(self.of).__name__}>"


@dataclass(frozen=True, slots=True)
class Array:
    """A numpy array as pickled: dtype string (`<f4`), shape, Fortran order, raw bytes."""

    dtype: str
    shape: tuple[int, ...]
    fortran: bool
    data: bytes
