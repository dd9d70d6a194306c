"""One pass over a syntax tree: scopes, bindings, and for each call and operator the context in which it runs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from mpdoctor.check.scripts.scopes import Binding, BindingKind, Context, Guard, Scope

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Walk:
    """What one pass collects. Expressions are visited in the order of evaluation, operands first."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None, "")
        self.scopes: list[Scope] = [self.module]
        self.imports: dict[str, str] = {}
        """Local name to the dotted name that it was imported as."""
        self.stars: list[str] = []
        """Modules whose names were all imported (`from torch import *`)."""
        self.calls: dict[str, list[ast.Call]] = {}
        """Calls by the last part of the called name."""
        self.operators: dict[type[ast.operator], list[ast.BinOp]] = {}
        self.attributes: set[str] = set()
        """Names of all attributes that are read."""
        self.subscripts: list[tuple[ast.Assign, Context]] = []
        """Assignments to `x[...]`."""
        self.contexts: dict[ast.AST, Context] = {}
        """Context of each call, operator and statement."""
        self.parents: dict[ast.AST, ast.AST] = {}
        """Parent of each call, operator, attribute and similar expression, up to its statement."""
        self.uses: dict[str, list[tuple[ast.Name, ast.AST]]] = {}
        """Reads of each name, with the expression or statement that reads it."""
        self.block(tree.body, Context(self.module))

    # Statements

    def block(self, statements: list[ast.stmt], context: Context) -> None:
        """Visit statements in order; after an `if` that leaves the block, the rest runs only when its test failed."""
        for statement in statements:
            self.contexts[statement] = context
            handler = getattr(self, f"_on_{type(statement).__name__}", None)
            if handler is None:
                self.children(statement, context)
            else:
                handler(statement, context)
            if isinstance(statement, ast.If):
                if _leaves(statement.body):
                    context = replace(context, guards=(*context.guards, Guard(statement, False, statement.test)))
                elif _leaves(statement.orelse):
                    context = replace(context, guards=(*context.guards, Guard(statement, True, statement.test)))

    def _on_If(self, node: ast.If, context: Context) -> None:
        self.visit(node.test, node, context)
        self.block(node.body, replace(context, guards=(*context.guards, Guard(node, True, node.test))))
        self.block(node.orelse, replace(context, guards=(*context.guards, Guard(node, False, node.test))))

    def _on_For(self, node: ast.For | ast.AsyncFor, context: Context) -> None:
        self.visit(node.iter, node, context)
        self.bind(node.target, None, node, context, BindingKind.OTHER)
        self.block(node.body, replace(context, loops=(*context.loops, node)))
        self.block(node.orelse, context)

    _on_AsyncFor = _on_For

    def _on_While(self, node: ast.While, context: Context) -> None:
        inner = replace(context, loops=(*context.loops, node))
        self.visit(node.test, node, inner)
        self.block(node.body, inner)
        self.block(node.orelse, context)

    def _on_With(self, node: ast.With | ast.AsyncWith, context: Context) -> None:
        for item in node.items:
            self.visit(item.context_expr, node, context)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, item.context_expr, node, context, BindingKind.ENTERED)
            context = replace(context, withs=(*context.withs, (item.context_expr, context)))
        self.block(node.body, context)

    _on_AsyncWith = _on_With

    def _on_Try(self, node: ast.Try, context: Context) -> None:
        self.block(node.body, context)
        self.block(node.orelse, context)
        for handler in node.handlers:
            self.block(handler.body, replace(context, guards=(*context.guards, Guard(handler, True, None))))
        self.block(node.finalbody, context)

    _on_TryStar = _on_Try

    def _on_Match(self, node: ast.Match, context: Context) -> None:
        self.visit(node.subject, node, context)
        for arm, case in enumerate(node.cases, 2):  # 0 and 1 would equal False and True
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None)
                if isinstance(name, str):
                    self.bound(context.scope, name, Binding(BindingKind.OTHER, None, node, context, (node.lineno, node.col_offset)))
            inner = replace(context, guards=(*context.guards, Guard(node, arm, None)))
            if case.guard is not None:
                self.visit(case.guard, node, inner)
            self.block(case.body, inner)

    def _on_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, context: Context) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator, node, context)
        scope = self._nested(node, context)
        scope_context = Context(scope, withs=tuple((decorator, context) for decorator in node.decorator_list))
        context.scope.functions[node.name] = scope
        arguments = node.args
        plain = arguments.posonlyargs + arguments.args
        defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
        named = list(zip(plain, defaults, strict=True)) + list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
        rest = [(argument, None) for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        for argument, default in [*named, *rest]:
            if default is not None:
                self.visit(default, node, context)
            place = (node.lineno, node.col_offset)
            self.bound(scope, argument.arg, Binding(BindingKind.PARAMETER, default, argument, context, place))
        self.block(node.body, scope_context)

    _on_AsyncFunctionDef = _on_FunctionDef

    def _on_ClassDef(self, node: ast.ClassDef, context: Context) -> None:
        for part in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
            self.visit(part, node, context)
        scope = self._nested(node, context)
        context.scope.classes[node.name] = scope
        self.block(node.body, replace(context, scope=scope))

    def _nested(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, context: Context) -> Scope:
        name = f"{context.scope.name}.{node.name}".lstrip(".")
        scope = Scope(node, context.scope, name)
        self.scopes.append(scope)
        self.bound(context.scope, node.name, Binding(BindingKind.OTHER, None, node, context, (node.lineno, node.col_offset)))
        return scope

    def _on_Assign(self, node: ast.Assign, context: Context) -> None:
        self.visit(node.value, node, context)
        for target in node.targets:
            self.bind(target, node.value, node, context, BindingKind.ASSIGNED)
            if isinstance(target, ast.Subscript):
                self.subscripts.append((node, context))
            if isinstance(target, ast.Attribute) and target.attr == "grad":
                context.scope.actions.append((node, context))

    def _on_AnnAssign(self, node: ast.AnnAssign, context: Context) -> None:
        if node.value is not None:
            self.visit(node.value, node, context)
            self.bind(node.target, node.value, node, context, BindingKind.ASSIGNED)

    def _on_AugAssign(self, node: ast.AugAssign, context: Context) -> None:
        self.visit(node.value, node, context)
        self.bind(node.target, None, node, context, BindingKind.OTHER)

    def _on_Return(self, node: ast.Return, context: Context) -> None:
        if node.value is not None:
            self.visit(node.value, node, context)
            context.scope.returns.append((node.value, context))

    def _on_Global(self, node: ast.Global | ast.Nonlocal, context: Context) -> None:
        context.scope.outer_names.update(node.names)

    _on_Nonlocal = _on_Global

    def _on_Import(self, node: ast.Import, context: Context) -> None:
        for alias in node.names:
            self.imports[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]

    def _on_ImportFrom(self, node: ast.ImportFrom, context: Context) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                self.imports[alias.asname or alias.name] = f"{module}.{alias.name}"

    # Bindings

    def bind(self, target: ast.expr, value: ast.expr | None, node: ast.stmt, context: Context, kind: BindingKind) -> None:
        """Record what an assignment binds; tuples are taken apart where the value is a tuple of the same length."""
        end = (node.end_lineno or node.lineno, node.end_col_offset or 0) if kind is BindingKind.ASSIGNED else (node.lineno, node.col_offset)
        match target:
            case ast.Name(id=name):
                self.bound(context.scope, name, Binding(kind, value, node, context, end))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element, part in zip(elements, self._elements(value, len(elements), node), strict=True):
                    self.bind(element, part, node, context, kind if part is not None else BindingKind.OTHER)
            case ast.Starred(value=inner):
                self.bind(inner, None, node, context, BindingKind.OTHER)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                self.parents[target] = node
                klass = context.scope.klass
                if klass is not None and owner == context.scope.self_name:
                    klass.attributes.setdefault(name, []).append(Binding(kind, value, node, context, end))
                else:
                    self.bound(self.module, f"{owner}.{name}", Binding(kind, value, node, context, end))
                self.visit(target.value, node, context)
            case ast.Attribute() | ast.Subscript():
                self.parents[target] = node
                self.children(target, context)

    def _elements(self, value: ast.expr | None, count: int, node: ast.stmt) -> Sequence[ast.expr | None]:
        """What each target of a tuple assignment gets: the tuple's own elements, or `call()[i]` for the result of a call."""
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == count:
            return value.elts
        if not isinstance(value, ast.Call):
            return [None] * count
        parts = [ast.copy_location(ast.Subscript(value=value, slice=ast.Constant(value=i), ctx=ast.Load()), value) for i in range(count)]
        for part in parts:
            self.parents[part] = node
        return parts

    def bound(self, scope: Scope, name: str, binding: Binding) -> None:
        """Record a binding in the scope that the name belongs to."""
        if name in scope.outer_names:
            scope = self.module
        scope.bindings.setdefault(name, []).append(binding)

    # Expressions

    def visit(self, node: ast.expr, parent: ast.AST, context: Context) -> None:
        """Visit an expression and what it is made of."""
        self.parents[node] = parent
        if isinstance(node, ast.Constant):
            return
        if isinstance(node, ast.Name):
            self.uses.setdefault(node.id, []).append((node, parent))
        elif isinstance(node, ast.Attribute):
            self.attributes.add(node.attr)
            self.visit(node.value, node, context)
        elif isinstance(node, ast.Call):
            self.visit(node.func, node, context)
            for argument in node.args:
                self.visit(argument, node, context)
            for keyword in node.keywords:
                self.visit(keyword.value, node, context)
            self.contexts[node] = context
            context.scope.actions.append((node, context))
            name = self.called(node.func)
            if name:
                self.calls.setdefault(name, []).append(node)
        elif isinstance(node, ast.BinOp):
            self.visit(node.left, node, context)
            self.visit(node.right, node, context)
            self.contexts[node] = context
            self.operators.setdefault(type(node.op), []).append(node)
        elif isinstance(node, ast.IfExp):
            self.visit(node.test, node, context)
            for arm, part in ((True, node.body), (False, node.orelse)):
                self.visit(part, node, replace(context, guards=(*context.guards, Guard(node, arm, node.test))))
        elif isinstance(node, ast.NamedExpr):
            self.visit(node.value, node, context)
            place = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            self.bound(context.scope, node.target.id, Binding(BindingKind.ASSIGNED, node.value, node, context, place))
        elif isinstance(node, ast.Lambda):
            self._lambda(node, context)
        else:
            self.children(node, context)

    def _lambda(self, node: ast.Lambda, context: Context) -> None:
        """A lambda's body is indexed, but runs at another time: none of its calls is an action of the function around it."""
        actions, context.scope.actions = context.scope.actions, []
        self.visit(node.body, node, context)
        context.scope.actions = actions

    def children(self, node: ast.AST, context: Context) -> None:
        """Visit the expressions directly below a node, whatever it is."""
        for field in node._fields:
            value = getattr(node, field, None)
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, ast.expr):
                    self.visit(part, node, context)
                elif isinstance(part, ast.comprehension):
                    self.children(part, context)
                    self.parents[part] = node

    def called(self, func: ast.expr) -> str | None:
        """The last part of a called name, import aliases undone."""
        if isinstance(func, ast.Attribute):
            return func.attr
        if isinstance(func, ast.Name):
            return self.imports.get(func.id, func.id).rpartition(".")[2]
        return None


def _leaves(statements: list[ast.stmt]) -> bool:
    """Whether a block never falls through to the statement after it."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, _LEAVES)
