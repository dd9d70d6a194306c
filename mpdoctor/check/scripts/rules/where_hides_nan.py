"""`torch.where` hides a NaN in the forward pass, but not in the backward pass.

What it looks for
`torch.where(condition, f(x), other)` where f is undefined or infinite for some x (sqrt, log, division, fractional powers, acos, exp), the
condition is about the same x, and x itself was not made safe before. `masked_fill` behind such an f is the same.

Why training breaks
Both branches are computed. The gradient of the branch that was not chosen is 0, and the chain rule multiplies it by the derivative of f at
the bad value: 0 * inf = NaN. The loss is finite, the weights become NaN.

When it is fine
When no gradient flows through x (integer positions, data).

Example
```python script bad
import torch
class Activation(torch.nn.Module):
    def forward(self, x):
        return torch.where(x > 0, torch.sqrt(x), 0.1 * x)
```

Instead
```python script good
import torch
class Activation(torch.nn.Module):
    def forward(self, x):
        return torch.where(x > 0, torch.sqrt(x.clamp(min=1e-12)), 0.1 * x)
```

How to confirm
`mpdoctor replay` reports both places: the hidden value in the forward pass, and the backward op that makes NaN of it.

References
pytorch/pytorch#68425; pytorch/pytorch#108618; pytorch/pytorch#187297.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Place, Script, within
from mpdoctor.check.scripts.patterns import guarded, leaves_graph, never_large
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_UNSAFE = ("sqrt", "rsqrt", "log", "log2", "log10", "reciprocal", "acos", "asin", "arccos", "arcsin", "acosh", "atanh")
_GRADED = ("exp", "expm1", "cosh", "sinh")
"""Finite everywhere in exact arithmetic, but they overflow."""


def check(script: Script) -> Iterator[Hit]:
    """Find unsafe functions whose bad values are selected away."""
    for op, context in script.ops("where"):
        if op.function and len(op.args) == 2:
            yield from _judge(script, op.node, op.operand, op.args, context)
        elif op.function is None and len(op.args) == 2:  # x.where(condition, other)
            yield from _judge(script, op.node, op.args[0], (op.operand, op.args[1]), context)
    for op, context in script.ops("masked_fill"):
        condition = op.argument(0, "mask")
        if condition is not None and len(op.args) + len(op.keywords) == 2:
            yield from _judge(script, op.node, condition, (op.operand,), context)


def _judge(script: Script, node: ast.Call, condition: ast.expr, arms: tuple[ast.expr, ...], context: Context) -> Iterator[Hit]:
    if not differentiable(script, context) or leaves_graph(script, node):
        return
    tested = _names(script, condition, context)
    for arm in arms:
        for unsafe, operand in _unsafe(script, arm, context):
            if isinstance(unsafe, ast.BinOp) and isinstance(unsafe.op, ast.Div) and not _zeros_left_out(script, condition, operand, context):
                continue
            if tested & _names(script, operand, context) and not leaves_graph(script, unsafe):
                yield hit(
                    script,
                    node,
                    f"{shown(script, unsafe)} is computed for the values that the condition leaves out too: "
                    "its gradient there is inf or NaN, and 0 * inf = NaN reaches every weight.",
                    remedy="Make the argument safe first: torch.where(ok, f(torch.where(ok, x, 1.0)), other), or f(x.clamp(min=1e-6)).",
                    because=((unsafe, "this is what the selection hides"),) if unsafe.lineno != node.lineno else (),
                )
                return


def _zeros_left_out(script: Script, condition: ast.expr, divisor: ast.expr, context: Context) -> bool:
    """Whether a condition compares a divisor with a number; `where(error < beta, error ** 2 / beta, ...)` does not."""
    if script.number(divisor, context) is not None:
        return False
    names = _names(script, divisor, context)
    condition, context = script.resolve(condition, context)
    for part in within(condition, (ast.Compare, ast.Call)):
        if isinstance(part, ast.Compare):
            sides = [part.left, *part.comparators]
            if any(script.number(side, context) is not None for side in sides) and any(names & _names(script, side, context) for side in sides):
                return True
        op = script.op(part) if isinstance(part, ast.Call) else None
        if op is not None and op.name in ("isfinite", "isnan", "isinf", "gt", "ge", "ne", "eq", "lt", "le"):
            return bool(names & _names(script, op.operand, context))
    return False


def _unsafe(script: Script, arm: ast.expr, context: Context, depth: int = 0) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Functions in an arm that are not finite everywhere, with the argument that decides, arguments made safe left out."""
    place: Place = script.resolve(arm, context)
    for part in within(place[0], (ast.Call, ast.BinOp)):
        match part:
            case ast.BinOp(op=ast.Div(), right=right) if not isinstance(right, ast.Constant) and not guarded(script, right, place[1]):
                yield part, right
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                power = script.number(exponent, place[1])
                if power is not None and (power < 0 or power % 1) and not guarded(script, base, place[1]):
                    yield part, base
            case ast.Call():
                op = script.op(part)
                if op is None:
                    continue
                if op.name in _UNSAFE and not guarded(script, op.operand, place[1]):
                    yield part, op.operand
                if op.name in _GRADED and not never_large(script, op.operand, place[1]):
                    yield part, op.operand


def _names(script: Script, node: ast.expr, context: Context, depth: int = 0) -> frozenset[str]:
    """The tensors that an expression is computed from: names and attributes of `self`, those behind a named condition included."""
    found: set[str] = set()
    for part in within(node, (ast.Name, ast.Attribute)):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == context.scope.self_name:
            found.add(f"self.{part.attr}")
        elif isinstance(part, ast.Name) and part.id != context.scope.self_name and part.id not in script.imports:
            found.add(part.id)
            definition = script.definition(part, context) if depth < 2 else None
            if definition is not None and isinstance(definition[0], (ast.Compare, ast.UnaryOp, ast.BinOp, ast.Name)):
                found |= _names(script, definition[0], definition[1], depth + 1)
    return frozenset(found)


RULE = Rule(code="CFG019", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="model-numerics", check=check)
