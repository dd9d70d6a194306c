"""What a name stands for where it is used, as far as one assignment decides that. Nothing is evaluated.

A name counts only if its scope assigns it once, or if it is a notebook's or script's top-level variable that plain statements assign one after
the other; a parameter, a loop's variable or a name that branches assign differently stands for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Names:
    """The names of a module."""

    def __init__(self, tree: ast.Module) -> None:
        """Find what every scope assigns."""
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._bindings: dict[ast.AST, dict[str, list[tuple[ast.stmt | None, ast.expr | None]]]] = {}
        self._statements = set(tree.body)
        imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
        self._imported = {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}

    def value(self, name: ast.Name) -> ast.expr | None:
        """The expression that a name stands for at the place where it is used, or None."""
        scope = self._scope(name)
        inside = False  # whether the name is used in a function inside the scope that is looked at
        while scope is not None:
            bound = self._bound(scope).get(name.id)
            if bound is not None and not (inside and isinstance(scope, ast.ClassDef)):
                return self._decided(bound, name, inside=inside)
            inside = True
            scope = self._scope(scope) if scope is not self.tree else None
        return None

    def is_imported(self, expression: ast.expr) -> bool:
        """Whether a dotted expression starts at an imported name, so that what it says is a constant of a library."""
        while isinstance(expression, ast.Attribute):
            expression = expression.value
        return isinstance(expression, ast.Name) and expression.id in self._imported

    def _decided(self, bound: list[tuple[ast.stmt | None, ast.expr | None]], name: ast.Name, *, inside: bool) -> ast.expr | None:
        if len(bound) == 1:
            return bound[0][1]
        if inside or not all(statement in self._statements for statement, _ in bound):
            return None
        before = [(statement.lineno, value) for statement, value in bound if statement is not None and statement.lineno < name.lineno]
        return max(before, key=lambda item: item[0])[1] if before else None

    def _scope(self, node: ast.AST) -> _Scope | None:
        """The innermost scope around a node."""
        while node in self.parents:
            child, node = node, self.parents[node]
            # Defaults and decorators of a function belong to the scope around it.
            if isinstance(node, ast.Module) or (isinstance(node, _SCOPES) and self._is_inside(node, child)):
                return node
        return None

    @staticmethod
    def _is_inside(scope: ast.AST, child: ast.AST) -> bool:
        body = getattr(scope, "body", ())
        return child is body or (isinstance(body, list) and child in body)

    def _bound(self, scope: _Scope) -> dict[str, list[tuple[ast.stmt | None, ast.expr | None]]]:
        if scope not in self._bindings:
            found: dict[str, list[tuple[ast.stmt | None, ast.expr | None]]] = {}
            for name, statement, value in _bindings(scope):
                found.setdefault(name, []).append((statement, value))
            self._bindings[scope] = found
        return self._bindings[scope]


def _bindings(scope: _Scope) -> Iterator[tuple[str, ast.stmt | None, ast.expr | None]]:
    """Each name that a scope binds: statement and expression where a plain assignment does, else None."""
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        arguments = scope.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if argument is not None:
                yield argument.arg, None, None
    stack: list[ast.AST] = list(scope.body) if isinstance(scope.body, list) else [scope.body]
    while stack:
        node = stack.pop()
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, node, value
                stack.append(value)
                continue
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if value is not None:
                    yield name, node, value
                    stack.append(value)
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name, None, None
            case (
                ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
                | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update" | "pop" | "setdefault" | "clear" | "append" | "extend"))
            ):
                yield name, None, None  # what was assigned is changed in place
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, None, None
                continue
            case ast.Lambda():
                continue
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    yield name, None, None
            case ast.alias(name=name, asname=alias):
                yield alias or name.partition(".")[0], None, None
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, None, None
            case _:
                pass
        stack.extend(ast.iter_child_nodes(node))
