"""Names in a script: what they were imported as, and which tensor operation a call stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpdoctor.check.scripts.scopes import Context
from mpdoctor.check.scripts.source import Source
from mpdoctor.check.scripts.walk import Walk

_USUAL_NAMES = {"F": "torch.nn.functional", "nn": "torch.nn", "np": "numpy", "pd": "pandas", "tf": "tensorflow", "jnp": "jax.numpy"}
"""What these names stand for in a file that binds them nowhere (a notebook's star import)."""
_FRAMEWORKS = (
    "torch", "lightning", "pytorch_lightning", "accelerate", "transformers", "deepspeed", "apex", "timm", "fastai", "trl", "peft", "diffusers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Op:
    """A tensor operation, whether written as a function of torch or as a method.

    Attributes:
        name: its name without torch's namespaces and without the underscore of in-place methods.
        node: the call.
        operand: the tensor that it works on.
        args: the other positional arguments.
        keywords: keyword arguments by name.
        function: dotted name, for one written as a function.
    """

    name: str
    node: ast.Call
    operand: ast.expr
    args: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    function: str | None

    def argument(self, position: int, name: str) -> ast.expr | None:
        """An argument besides the operand, by position (from 0) or name."""
        return self.args[position] if position < len(self.args) else self.keywords.get(name)


class Names:
    """The first layer of `model.Script`: the parsed text, its index, and its names."""

    def __init__(self, source: Source) -> None:
        self.source = source
        walk = Walk(source.tree)
        self.module, self.scopes = walk.module, walk.scopes
        self.imports, self._stars, self._attributes = walk.imports, walk.stars, walk.attributes
        self.calls, self.operators, self.subscripts = walk.calls, walk.operators, walk.subscripts
        self.contexts, self.parents, self.uses = walk.contexts, walk.parents, walk.uses
        self._qualnames: dict[ast.expr, str | None] = {}
        self._ops: dict[ast.expr, Op | None] = {}
        self._numbers: dict[ast.expr, float | None] = {}
        self.answers: dict[object, Any] = {}
        """Answers that other modules worked out, by question."""

    @cached_property
    def uses_torch(self) -> bool:
        """Whether it imports torch or a framework on top of it."""
        roots = {name.partition(".")[0] for name in [*self.imports.values(), *self._stars]}
        return not roots.isdisjoint(_FRAMEWORKS)

    def imports_from(self, *packages: str) -> bool:
        """Whether it imports one of these packages, or from it."""
        return any(name == package or name.startswith(f"{package}.") for name in [*self.imports.values(), *self._stars] for package in packages)

    def qualname(self, node: ast.expr) -> str | None:
        """Dotted name of an imported object (`torch.nn.functional.softmax`), aliases undone; None for a value of the script's own."""
        if node not in self._qualnames:
            self._qualnames[node] = None  # ends a cycle of aliases
            self._qualnames[node] = self._qualname(node)
        return self._qualnames[node]

    def _qualname(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute):
            base = self.qualname(node.value)
            if isinstance(node.value, ast.Name) and base == node.value.id and base != "torch" and base not in self.imports:
                return None  # a value that is bound in another file, or by a star import
            return f"{base}.{node.attr}" if base else None
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.imports:
            return self.imports[node.id]
        bindings = self.module.bindings.get(node.id, [])
        if not bindings:
            if node.id in self._bound_names:
                return None
            star = next((module for module in self._stars if module.partition(".")[0] in _FRAMEWORKS and node.id not in _USUAL_NAMES), None)
            return f"{star}.{node.id}" if star and node.id != "torch" else _USUAL_NAMES.get(node.id, node.id)
        value = bindings[0].value
        return self.qualname(value) if len(bindings) == 1 and isinstance(value, (ast.Name, ast.Attribute)) else None

    @cached_property
    def _bound_names(self) -> frozenset[str]:
        return frozenset(name for scope in self.scopes for name in scope.bindings)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All names that the code uses or binds: imports, variables, attributes, functions (not those in comments and strings)."""
        imported = (part for name in self.imports.values() for part in name.split("."))
        return frozenset({*self.imports, *imported, *self._bound_names, *self.uses, *self._attributes})

    def named(self, *names: str) -> Iterator[tuple[ast.Call, Context]]:
        """Calls whose called name ends in one of `names`, in the order of the file."""
        for name in names:
            for call in self.calls.get(name, ()):
                yield call, self.contexts[call]

    def ops(self, *names: str) -> Iterator[tuple[Op, Context]]:
        """Tensor operations with one of these names, in-place forms included."""
        for name in names:
            for call, context in self.named(name, f"{name}_"):
                if op := self.op(call):
                    yield op, context

    def op(self, node: ast.expr) -> Op | None:
        """The tensor operation that a call stands for; None for a call of something else (numpy, math, the script's own functions)."""
        if node not in self._ops:
            self._ops[node] = self._op(node) if isinstance(node, ast.Call) else None
        return self._ops[node]

    def _op(self, node: ast.Call) -> Op | None:
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        qualname = self.qualname(node.func)
        if qualname is not None:
            operand = node.args[0] if node.args else keywords.get("input")
            if not qualname.startswith("torch.") or operand is None:
                return None
            return Op(qualname.rpartition(".")[2].rstrip("_"), node, operand, tuple(node.args[1:]), keywords, qualname)
        if isinstance(node.func, ast.Attribute):
            return Op(node.func.attr.rstrip("_"), node, node.func.value, tuple(node.args), keywords, None)
        return None

    def key(self, node: ast.expr) -> str:
        """How an object is written (`self.scaler`): tells whether two expressions mean the same object."""
        return node.id if isinstance(node, ast.Name) else self.source.segment(node)
