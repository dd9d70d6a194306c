"""The subject of the script rules: a parsed script and the questions that rules ask about it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TypeVar

from mpdoctor.check.scripts.names import Op
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.check.scripts.values import Place, Values

T = TypeVar("T")


class Script(Values):
    """A parsed script. Nothing of it is ever executed.

    Layers: `names` (imports, operations), `classes`, `values` (what a name holds), and here the places of expressions.
    """

    def context(self, node: ast.AST) -> Context:
        """The context of any expression or statement of the script."""
        while node not in self.contexts:
            node = self.parents[node]
        return self.contexts[node]

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The expressions around an expression, from the inside, up to and including its statement."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
            yield node


def once(function: Callable[[Script], T]) -> Callable[[Script], T]:
    """Make a question about a whole script be worked out only once for each script."""

    @wraps(function)
    def ask(script: Script) -> T:
        if ask not in script.answers:
            script.answers[ask] = function(script)
        answer: T = script.answers[ask]
        return answer

    return ask


def same(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are written alike, layout aside."""
    return type(a) is type(b) and ast.dump(a) == ast.dump(b)


def within(node: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> Iterable[ast.AST]:
    """All nodes of these kinds in an expression."""
    return (part for part in ast.walk(node) if isinstance(part, kinds))


__all__ = ["Op", "Place", "Script", "once", "same", "within"]
