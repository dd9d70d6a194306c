"""What a name may stand for, and under which conditions a piece of code runs.

Scopes hold bindings; a `Context` says for one expression in which function it stands, inside which loops
and `with` blocks, and behind which `if` tests.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import StrEnum

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While


class BindingKind(StrEnum):
    """How a name got its value."""

    ASSIGNED = "assigned"
    PARAMETER = "parameter"
    """`value` is the default, or None without one."""
    ENTERED = "entered"
    """By `with value as name`."""
    OTHER = "other"
    """A loop variable, an augmented assignment, a pattern: no expression stands for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place where a name (or an attribute of `self`) gets a value."""

    kind: BindingKind
    value: ast.expr | None
    node: ast.AST
    """The statement or parameter that binds."""
    context: Context
    position: tuple[int, int]
    """Line and byte column after which the binding holds."""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class or function, and the names bound in it."""

    node: ast.Module | ast.ClassDef | Function
    parent: Scope | None
    name: str
    """Dotted name within the script; empty for the module."""
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    attributes: dict[str, list[Binding]] = field(default_factory=dict)
    """For a class: what its methods assign to `self.X`."""
    functions: dict[str, Scope] = field(default_factory=dict)
    classes: dict[str, Scope] = field(default_factory=dict)
    actions: list[tuple[ast.Call | ast.Assign, Context]] = field(default_factory=list)
    """Calls, and assignments to a `.grad`, in the order of evaluation; nested functions keep their own."""
    returns: list[tuple[ast.expr, Context]] = field(default_factory=list)
    outer_names: set[str] = field(default_factory=set)
    """Names declared `global` or `nonlocal`."""

    @property
    def function(self) -> Function | None:
        """The function's node, or None for a module or class."""
        return self.node if isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None

    @property
    def klass(self) -> Scope | None:
        """For a method, or a function inside one: the scope of its class."""
        scope: Scope | None = self
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return scope

    @property
    def self_name(self) -> str | None:
        """Name of a method's first parameter (`self` by convention)."""
        function = self.function
        if function is None or self.parent is None:
            return None
        if not isinstance(self.parent.node, ast.ClassDef):
            return self.parent.self_name  # a function inside a method sees its self
        arguments = function.args.posonlyargs + function.args.args
        return arguments[0].arg if arguments else None


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A test that decides whether a piece of code runs.

    `arm` tells the branches of one statement apart: True and False for an `if`, the case's number for
    a `match`. `test` is None where no boolean expression stands for the branch.
    """

    statement: ast.AST
    arm: bool | int
    test: ast.expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Where an expression stands. The tuples go from the outermost to the innermost."""

    scope: Scope
    guards: tuple[Guard, ...] = ()
    loops: tuple[Loop, ...] = ()
    withs: tuple[tuple[ast.expr, Context], ...] = ()
    """Context expressions of the open `with` blocks and of the function's decorators, each with its own place."""

    def inside(self, outer: Context) -> Context:
        """This context, for code that is called from `outer`."""
        withs = tuple((expression, there.inside(outer)) for expression, there in self.withs)
        return Context(self.scope, outer.guards + self.guards, outer.loops + self.loops, outer.withs + withs)
