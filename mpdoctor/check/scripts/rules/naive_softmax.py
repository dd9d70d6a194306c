"""Softmax or logsumexp is written out without subtracting the maximum.

What it looks for
`exp(x) / exp(x).sum(...)` and `log(exp(x).sum(...))`, also through names. Exponents that are bounded (minus their maximum, clamped, a negated
square, a product of normalised vectors) are left alone.

Why training breaks
`exp` overflows above 88.7 in fp32 and bf16 and above 11.09 in fp16; inf/inf is NaN. When all exponents are very negative the sum is 0
and the quotient 0/0. `torch.softmax` and `torch.logsumexp` subtract the maximum first and have neither problem.

When it is fine
When the exponents are bounded by construction, e.g. by a clamp further up that is not visible here.

Example
```python script bad
import torch
class Gate(torch.nn.Module):
    def forward(self, scores):
        weights = torch.exp(scores)
        return weights / weights.sum(-1, keepdim=True)
```

Instead
```python script good
import torch
class Gate(torch.nn.Module):
    def forward(self, scores):
        return torch.softmax(scores, dim=-1)
```

How to confirm
`mpdoctor replay` names `exp` as the origin, with the exponent that overflowed.

References
PyTorch, `torch.softmax`, `torch.logsumexp`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Op, Place, Script, same
from mpdoctor.check.scripts.patterns import never_large, reduction
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find softmax and logsumexp by hand."""
    for node in script.operators.get(ast.Div, ()):
        context = script.contexts[node]
        summed = _sum_of_exp(script, node.right, context)
        numerator = _exp(script, node.left, context)
        if summed is None or numerator is None or not _same_value(script, summed, numerator):
            continue
        if not never_large(script, numerator[0].operand, numerator[1]):
            yield hit(
                script,
                node,
                f"{shown(script, node)} is softmax without subtracting the maximum: exp overflows above 88.7 (11.09 in fp16), and inf/inf is NaN.",
                remedy=f"Use torch.softmax({shown(script, numerator[0].operand)}, dim=...).",
            )
    for op, context in script.ops("log"):
        summed = _sum_of_exp(script, op.operand, context)
        if summed is not None and not never_large(script, summed[0].operand, summed[1]):
            yield hit(
                script,
                op.node,
                f"{shown(script, op.node)} is logsumexp without subtracting the maximum: exp overflows above 88.7 (11.09 in fp16).",
                remedy=f"Use torch.logsumexp({shown(script, summed[0].operand)}, dim=...).",
            )


def _exp(script: Script, node: ast.expr, context: Context) -> tuple[Op, Context] | None:
    node, context = script.resolve(node, context)
    op = script.op(node)
    return (op, context) if op is not None and op.name == "exp" else None


def _sum_of_exp(script: Script, node: ast.expr, context: Context) -> tuple[Op, Context] | None:
    place: Place = script.resolve(node, context)
    op = reduction(script, place[0], "sum")
    return _exp(script, op.operand, place[1]) if op is not None else None


def _same_value(script: Script, a: tuple[Op, Context], b: tuple[Op, Context]) -> bool:
    return a[0].node is b[0].node or same(a[0].operand, b[0].operand)


RULE = Rule(code="CFG013", severity=Severity.WARNING, confidence=Confidence.HIGH, cause="model-numerics", check=check)
