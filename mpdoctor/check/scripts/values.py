"""What a name holds: definitions, possible values, numbers, and the script's own functions behind a call."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from mpdoctor.check.scripts.classes import Classes
from mpdoctor.check.scripts.scopes import Binding, BindingKind, Context, Scope
from mpdoctor.core.numerics import find_format

Place = tuple[ast.expr, Context]
"""An expression and the context in which it stands."""

_HOPS = 6
"""How many names are followed from an expression to its value; real code needs one or two."""
_MOST_VALUES = 50
"""How many values of one name are told apart."""


class Values(Classes):
    """The third layer of `model.Script`."""

    def bindings(self, node: ast.expr, context: Context) -> tuple[Scope | None, list[Binding]]:
        """All bindings of a name or attribute, and the scope that holds them (for an attribute of `self`, the class)."""
        if isinstance(node, ast.Name):
            scope: Scope | None = context.scope
            while scope is not None:
                if node.id in scope.bindings and (scope is context.scope or not isinstance(scope.node, ast.ClassDef)):
                    return scope, scope.bindings[node.id]
                scope = scope.parent
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            klass = context.scope.klass
            if klass is not None and node.value.id == context.scope.self_name:
                for ancestor in self.ancestry(klass):
                    if node.attr in ancestor.attributes:
                        return ancestor, ancestor.attributes[node.attr]
                    if node.attr in ancestor.bindings and node.attr not in ancestor.functions:
                        return ancestor, ancestor.bindings[node.attr]
                return klass, []
            return self.module, self.module.bindings.get(f"{node.value.id}.{node.attr}", [])
        return None, []

    def definition(self, node: ast.expr, context: Context) -> Place | None:
        """The expression that a name holds where it is read: the last assignment before it in the same function, or its only one elsewhere."""
        scope, found = self.bindings(node, context)
        if not found:
            return None
        here = self._before(found, context.scope, (node.lineno, node.col_offset))
        if here is not None and (scope is context.scope or isinstance(node, ast.Attribute)):
            last = here
        elif scope is not context.scope and len(found) == 1:
            last = found[0]
        else:
            return None
        if last.kind is not BindingKind.ASSIGNED or last.value is None or last.value is node:
            return None
        return last.value, last.context

    def _before(self, found: list[Binding], scope: Scope, position: tuple[int, int]) -> Binding | None:
        """The last of a name's bindings in a function before a position. Generated code binds one name thousands of times."""
        question = (id(found), scope)
        if question not in self.answers:
            here = sorted((b for b in found if b.context.scope is scope), key=lambda b: b.position)
            self.answers[question] = ([b.position for b in here], here)
        positions, here = self.answers[question]
        index = bisect_right(positions, position)
        return here[index - 1] if index else None

    def resolve(self, node: ast.expr, context: Context) -> Place:
        """An expression with names followed to what they hold, as far as that is certain."""
        for _ in range(_HOPS):
            if not isinstance(node, (ast.Name, ast.Attribute)):
                break
            found = self.definition(node, context)
            if found is None:
                break
            node, context = found
        return node, context

    def values(self, node: ast.expr, context: Context) -> list[Place]:
        """All expressions that a value may come from: every assignment, both arms of a conditional, results of the script's own functions.

        Parameters stand for the arguments of the script's own calls, else for their default. A name of which something is not known
        is among its own values.
        """
        found: list[Place] = []
        seen: set[int] = set()
        queue: list[tuple[ast.expr, Context, int]] = [(node, context, 0)]
        while queue and len(found) < _MOST_VALUES:
            current, place, hops = queue.pop(0)
            if id(current) in seen or hops > _HOPS or len(seen) > 4 * _MOST_VALUES:
                continue
            seen.add(id(current))
            match current:
                case ast.IfExp(body=body, orelse=orelse):
                    queue += [(body, place, hops + 1), (orelse, place, hops + 1)]
                case ast.BoolOp(values=parts):
                    queue += [(part, place, hops + 1) for part in parts]
                case ast.NamedExpr(value=value) | ast.Await(value=value):
                    queue.append((value, place, hops + 1))
                case ast.Call() if (callee := self.callee(current, place)) is not None and callee.returns:
                    queue += [(value, there, hops + 1) for value, there in callee.returns]
                case ast.Call(func=ast.Name() | ast.Attribute() as function) if isinstance(made := self.resolve(function, place)[0], ast.Lambda):
                    queue.append((made.body, place, hops + 1))
                case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int() as i)) if results := self._results(call, place, i):
                    queue += [(value, there, hops + 1) for value, there in results]
                case ast.Name() | ast.Attribute():
                    sources = list(self._sources(current, place))
                    queue += [(*source, hops + 1) for source in sources if source is not None]
                    if not sources or None in sources:
                        found.append((current, place))
                case _:
                    found.append((current, place))
        return found

    def _results(self, call: ast.Call, context: Context, index: int) -> list[Place]:
        """What one element of a call's result may be: of a tuple that an own function returns, or the argument that `prepare(...)` gives back."""
        callee = self.callee(call, context)
        if callee is not None:
            tuples = [(value, there) for value, there in callee.returns if isinstance(value, ast.Tuple) and index < len(value.elts)]
            return [(value.elts[index], there) for value, there in tuples if isinstance(value, ast.Tuple)]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "prepare" and index < len(call.args):
            return [(call.args[index], context)]
        return []

    def _sources(self, node: ast.expr, context: Context) -> Iterator[Place | None]:
        """What a name or attribute may hold; None for each value that no expression stands for."""
        scope, bindings = self.bindings(node, context)
        if len(bindings) > _MOST_VALUES:
            yield None
        for binding in bindings[:_MOST_VALUES]:
            if binding.kind is BindingKind.PARAMETER and scope is not None and isinstance(binding.node, ast.arg):
                arguments = list(islice(self.arguments(scope, binding.node.arg), _MOST_VALUES))
                if arguments:
                    yield from arguments
                else:
                    yield (binding.value, binding.context) if binding.value is not None else None
            elif binding.value is not node:
                yield (binding.value, binding.context) if binding.value is not None else None

    def number(self, node: ast.expr | None, context: Context) -> float | None:
        """The value of a numeric expression made of literals and of names with a single numeric value; None when it is not known."""
        if node is None:
            return None
        if isinstance(node, ast.Constant):
            return self._number(node, context)
        if node not in self._numbers:
            self._numbers[node] = None  # `n = n + 1` has no value of its own
            self._numbers[node] = self._only_number(self.values(node, context))
        return self._numbers[node]

    def _only_number(self, values: list[Place]) -> float | None:
        first: float | None = None
        for value, there in values:
            number = self._number(value, there)
            if number is None or (first is not None and number != first):
                return None
            first = number
        return first

    def _number(self, node: ast.expr, context: Context) -> float | None:
        try:
            match node:
                case ast.Constant(value=bool()):
                    return None
                case ast.Constant(value=int() | float() as value):
                    return float(value)
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    number = self.number(operand, context)
                    return None if number is None else -number
                case ast.BinOp(left=left, op=op, right=right):
                    a, b = self.number(left, context), self.number(right, context)
                    return None if a is None or b is None else _apply(op, a, b)
                case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
                    return float(text)
                case ast.Attribute(value=ast.Call(func=function, args=[dtype]), attr="min" | "max" | "eps" | "tiny" | "smallest_normal" as limit):
                    if (self.qualname(function) or "") in ("torch.finfo", "numpy.finfo"):
                        return _limit((self.qualname(dtype) or "").rpartition(".")[2], limit)
                case ast.Attribute(attr="inf"):
                    return float("inf") if (self.qualname(node) or "").partition(".")[0] in ("math", "torch", "numpy") else None
        except (OverflowError, ValueError, ZeroDivisionError):
            return None
        return None

    # Calls of the script's own functions

    @cached_property
    def _call_sites(self) -> dict[Scope, list[tuple[ast.Call, Context]]]:
        found: dict[Scope, list[tuple[ast.Call, Context]]] = {}
        for calls in self.calls.values():
            for call in calls:
                callee = self.callee(call, self.contexts[call])
                if callee is not None:
                    found.setdefault(callee, []).append((call, self.contexts[call]))
        return found

    def call_sites(self, scope: Scope) -> list[tuple[ast.Call, Context]]:
        """The script's own calls of a function."""
        return self._call_sites.get(scope, [])

    def arguments(self, scope: Scope, parameter: str) -> Iterator[Place]:
        """What the script's own calls pass for a parameter."""
        for call, context in self.call_sites(scope):
            value = self.passed(scope, call).get(parameter)
            if value is not None:
                yield value, context

    def passed(self, scope: Scope, call: ast.Call) -> dict[str, ast.expr]:
        """Arguments of a call by the parameter that they are for."""
        function = scope.function
        if function is None:
            return {}
        plain = [argument.arg for argument in function.args.posonlyargs + function.args.args]
        if scope.parent is not None and isinstance(scope.parent.node, ast.ClassDef):
            plain = plain[1:]
        positional = [] if any(isinstance(argument, ast.Starred) for argument in call.args) else call.args
        named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        return dict(zip(plain, positional, strict=False)) | named

    def callee(self, call: ast.Call, context: Context) -> Scope | None:
        """The script's own function or method that a call runs, where that is certain."""
        match call.func:
            case ast.Name(id=name):
                scope: Scope | None = context.scope
                while scope is not None:
                    if name in scope.functions and not (isinstance(scope.node, ast.ClassDef) and scope is not context.scope):
                        return scope.functions[name] if len(scope.bindings.get(name, ())) == 1 else None
                    if name in scope.classes:
                        return None
                    scope = scope.parent
                instance = self.class_of(call.func, context)
                return self.method(instance, "__call__") if instance else None
            case ast.Attribute(value=owner, attr=name):
                klass = context.scope.klass
                if isinstance(owner, ast.Name) and klass is not None and owner.id == context.scope.self_name:
                    return self.method(klass, name)
                instance = self.class_of(owner, context)
                return self.method(instance, name) if instance else None
        return None

    def class_of(self, node: ast.expr, context: Context) -> Scope | None:
        """The script's own class of which a name holds an instance."""
        if not isinstance(node, (ast.Name, ast.Attribute)) or not self.own_classes:
            return None
        found = self.definition(node, context)
        if found is None or not isinstance(found[0], ast.Call) or not isinstance(found[0].func, ast.Name):
            return None
        return self.own_classes.get(found[0].func.id)

    def identities(self, node: ast.expr, context: Context) -> frozenset[tuple[Scope | None, str]]:
        """The objects that a name or attribute may be: where its name is bound, and how it is written there.

        A parameter is also each object that the script's own calls pass for it, and a name that holds the result of such a
        call is also what the function returns.
        """
        found: set[tuple[Scope | None, str]] = set()
        queue = [(node, context)]
        while queue and len(found) < 20:
            current, place = queue.pop()
            root: ast.expr = current
            while isinstance(root, ast.Attribute):
                root = root.value
            scope, bindings = self.bindings(current if isinstance(current, ast.Name) else root, place)
            klass = place.scope.klass
            if isinstance(root, ast.Name) and root.id == place.scope.self_name and klass is not None:
                scope = klass
            identity = (scope, self.key(current))
            if identity in found:
                continue
            found.add(identity)
            if isinstance(current, ast.Name) and scope is not None and any(b.kind is BindingKind.PARAMETER for b in bindings):
                queue += list(islice(self.arguments(scope, current.id), _MOST_VALUES))
            for binding in bindings[:_MOST_VALUES] if isinstance(current, ast.Name) else ():
                match binding.value:
                    case ast.Call() as call if (callee := self.callee(call, binding.context)) is not None:
                        returned = callee.returns
                    case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int() as index)):
                        returned = self._results(call, binding.context, index)
                    case _:
                        continue
                queue += [(value, there) for value, there in returned if isinstance(value, (ast.Name, ast.Attribute))]
        return frozenset(found)


def _limit(dtype: str, limit: str) -> float | None:
    """A number that `finfo` gives for a format."""
    number_format = find_format(dtype)
    if number_format is None:
        return None
    limits = {"min": -number_format.max, "max": number_format.max, "eps": number_format.spacing_at_one}
    return limits.get(limit, number_format.smallest_normal)


def _apply(op: ast.operator, a: float, b: float) -> float | None:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div():
            return a / b
        case ast.Pow():
            value = a**b
            return value if isinstance(value, float) else None
    return None
