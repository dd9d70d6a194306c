"""The subject of the script rules: a parsed script and the questions that rules ask about it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

from mpdoctor.check.scripts.scopes import Binding, BindingKind, Context, Scope
from mpdoctor.check.scripts.source import Source
from mpdoctor.check.scripts.walk import Walk

T = TypeVar("T")

Place = tuple[ast.expr, Context]
"""An expression and the context in which it stands."""

_HOPS = 6
"""How many names are followed from an expression to its value; real code needs one or two."""
_MOST_VALUES = 50
"""How many values of one name are told apart."""
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


class Script:
    """A parsed script. Nothing of it is ever executed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        walk = Walk(source.tree)
        self.module, self.scopes = walk.module, walk.scopes
        self.imports, self._stars = walk.imports, walk.stars
        self.calls, self.operators, self.subscripts = walk.calls, walk.operators, walk.subscripts
        self.contexts, self.parents, self.uses = walk.contexts, walk.parents, walk.uses
        self._qualnames: dict[ast.expr, str | None] = {}
        self._ops: dict[ast.expr, Op | None] = {}
        self._numbers: dict[ast.expr, float | None] = {}
        self.answers: dict[object, Any] = {}
        """Answers that other modules worked out, by question."""

    # Names

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

    # Values

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
        here = [b for b in found if b.context.scope is context.scope and b.position <= (node.lineno, node.col_offset)]
        if here and (scope is context.scope or isinstance(node, ast.Attribute)):
            last = max(here, key=lambda b: b.position)
        elif scope is not context.scope and len(found) == 1:
            last = found[0]
        else:
            return None
        if last.kind is not BindingKind.ASSIGNED or last.value is None or last.value is node:
            return None
        return last.value, last.context

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

        Parameters stand for the arguments of the script's own calls, else for their default.
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
                case ast.Name() | ast.Attribute():
                    sources = list(self._sources(current, place))
                    queue += [(value, there, hops + 1) for value, there in sources]
                    if not sources:
                        found.append((current, place))
                case _:
                    found.append((current, place))
        return found

    def _sources(self, node: ast.expr, context: Context) -> Iterator[Place]:
        scope, bindings = self.bindings(node, context)
        for binding in bindings:
            if binding.kind is BindingKind.PARAMETER and scope is not None and isinstance(binding.node, ast.arg):
                arguments = list(self.arguments(scope, binding.node.arg))
                if arguments:
                    yield from arguments
                elif binding.value is not None:
                    yield binding.value, binding.context
            elif binding.value is not None and binding.value is not node:
                yield binding.value, binding.context

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
                case ast.Attribute(attr="inf"):
                    return float("inf") if (self.qualname(node) or "").partition(".")[0] in ("math", "torch", "numpy") else None
        except (OverflowError, ValueError, ZeroDivisionError):
            return None
        return None

    # Functions and classes

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

    @cached_property
    def own_classes(self) -> dict[str, Scope]:
        """The script's classes by name."""
        return {name: klass for scope in self.scopes for name, klass in scope.classes.items()}

    def method(self, klass: Scope, name: str) -> Scope | None:
        """A method of a class of the script, or of its own base classes."""
        return next((ancestor.functions[name] for ancestor in self.ancestry(klass) if name in ancestor.functions), None)

    def ancestry(self, klass: Scope) -> list[Scope]:
        """A class and those of its bases that stand in the script."""
        found = [klass]
        for ancestor in found:
            assert isinstance(ancestor.node, ast.ClassDef)
            for base in ancestor.node.bases:
                own = self.own_classes.get(base.id) if isinstance(base, ast.Name) else None
                if own is not None and own not in found:
                    found.append(own)
        return found

    def base_names(self, klass: Scope) -> list[str]:
        """Last parts of the names of all base classes that are not the script's own."""
        nodes = [ancestor.node for ancestor in self.ancestry(klass)]
        bases = [base for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
        return [(self.qualname(base) or "").rpartition(".")[2] for base in bases]

    def is_module(self, klass: Scope) -> bool:
        """Whether a class is a `torch.nn.Module`."""
        return any(name.endswith(("Module", "PreTrainedModel", "ModelMixin", "Layer", "Model")) for name in self.base_names(klass))

    def enclosing_module(self, scope: Scope) -> Scope | None:
        """The `nn.Module` class that a function belongs to."""
        klass = scope.klass
        return klass if klass is not None and self.is_module(klass) else None

    # Places

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

    def identities(self, node: ast.expr, context: Context) -> frozenset[tuple[Scope | None, str]]:
        """The objects that a name or attribute may be: where its name is bound, and how it is written there.

        A parameter is also each object that the script's own calls pass for it.
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
                queue += list(self.arguments(scope, current.id))
        return frozenset(found)

    def key(self, node: ast.expr) -> str:
        """How an object is written (`self.scaler`): tells whether two expressions mean the same object."""
        return node.id if isinstance(node, ast.Name) else self.source.segment(node)


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
