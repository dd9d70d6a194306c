"""Which statements of a shell script run only under a test: `if` and `case` branches, and what follows `&&` and `||`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class Worded(Protocol):
    """Something with the text of a word."""

    @property
    def text(self) -> str:
        """The word."""
        ...


W = TypeVar("W", bound=Worded)

_OPENING = ("if", "case")
_NEXT = ("elif", "else")
_CLOSING = ("fi", "esac")
_AROUND = ("then", "do", "else", "{", "!", "time")
"""Words before a command that are no part of it."""


def branches(statements: Iterable[tuple[list[W], str]]) -> Iterator[tuple[list[W], tuple[int, ...]]]:
    """Each statement without the keywords before it, and the branches that it stands in, from the outermost.

    The body of a loop and of a function counts as run. Commands joined by `&&` and `||` share one branch from the second on.
    """
    opened: list[int] = []
    chain: int | None = None
    for number, (statement, operator) in enumerate(statements):
        words = statement
        chain = (number if chain is None else chain) if operator in ("&&", "||") else None
        if operator == ";;" and opened:
            opened[-1] = number
        while words:
            first = words[0].text
            if first in _CLOSING and opened:
                opened.pop()
            elif first in _NEXT and opened:
                opened[-1] = number
            elif first in _OPENING and len(opened) < 100:
                opened.append(number)
            if first not in _AROUND:
                break
            words = words[1:]
        if words:
            yield words, (*opened, *(() if chain is None else (chain,)))
