"""Softmax and logsumexp that a script writes out by hand."""

from __future__ import annotations

import ast

from mpdoctor.check.scripts.model import Op, Script, once, same
from mpdoctor.check.scripts.patterns import never_large, reduction
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand:
    """One place: the whole expression, the function that does the same safely, its argument, and the calls of `exp` that are part of it."""

    node: ast.expr
    better: str
    argument: ast.expr
    parts: tuple[ast.expr, ...]


@once
def written_out(script: Script) -> list[ByHand]:
    """All quotients `exp(x) / exp(x).sum()` and logarithms `log(exp(x).sum())` whose exponents have no visible bound."""
    found = []
    for node in script.operators.get(ast.Div, ()):
        context = script.contexts[node]
        summed, numerator = _sum_of_exp(script, node.right, context), _exp(script, node.left, context)
        if summed is None or numerator is None or not (summed[0].node is numerator[0].node or same(summed[0].operand, numerator[0].operand)):
            continue
        if not never_large(script, numerator[0].operand, numerator[1]):
            parts = (numerator[0].node, summed[0].node)
            found.append(ByHand(node=node, better="torch.softmax", argument=numerator[0].operand, parts=parts))
    for op, context in script.ops("log"):
        summed = _sum_of_exp(script, op.operand, context)
        if summed is not None and not never_large(script, summed[0].operand, summed[1]):
            found.append(ByHand(node=op.node, better="torch.logsumexp", argument=summed[0].operand, parts=(summed[0].node,)))
    return found


def _exp(script: Script, node: ast.expr, context: Context) -> tuple[Op, Context] | None:
    node, context = script.resolve(node, context)
    op = script.op(node)
    return (op, context) if op is not None and op.name == "exp" else None


def _sum_of_exp(script: Script, node: ast.expr, context: Context) -> tuple[Op, Context] | None:
    node, context = script.resolve(node, context)
    op = reduction(script, node, "sum")
    return _exp(script, op.operand, context) if op is not None else None
