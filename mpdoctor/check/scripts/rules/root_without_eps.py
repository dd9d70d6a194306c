"""The square root of something that can be exactly zero is differentiated.

What it looks for
`sqrt` (or `** 0.5`) of a sum or mean of squared differences, of a mean squared error, or of a squared distance that is multiplied out
(a^2 + b^2 - 2 ab), in code that gradients flow through, without a constant inside the root or a clamp.

Why training breaks
The derivative of sqrt(x) is 1/(2 sqrt(x)): infinite at 0. Two equal samples, a padded row or a perfect prediction make the sum exactly 0; the
forward pass is fine (0), and the backward pass multiplies infinity by 0, which is NaN in every weight. No loss scale helps, so a GradScaler
halves its scale for ever. A distance that is multiplied out is even negative by rounding, and its root NaN.

When it is fine
When the argument is never exactly zero, or the value is only reported. `torch.linalg.vector_norm`, `torch.cdist` and `tensor.norm()` define
their gradient at 0 as 0 and are not reported.

Example
```python script bad
import torch
class Distance(torch.nn.Module):
    def forward(self, a, b):
        return (a - b).pow(2).sum(-1).sqrt()
```

Instead
```python script good
import torch
class Distance(torch.nn.Module):
    def forward(self, a, b):
        return ((a - b).pow(2).sum(-1) + 1e-12).sqrt()
class Norm(torch.nn.Module):
    def forward(self, a, b):
        return torch.linalg.vector_norm(a - b, dim=-1)
```

How to confirm
`mpdoctor replay` names `SqrtBackward0` as the origin in the backward pass, at any loss scale.

References
pytorch/pytorch#2421; pytorch/pytorch PR#2775.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script, within
from mpdoctor.check.scripts.patterns import guarded, leaves_graph, mentions, reduction, square_of
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find roots of sums of squares and of squared errors."""
    for node, operand, context in _roots(script):
        if not differentiable(script, context) or leaves_graph(script, node) or mentions(operand, "grad", "param"):
            continue
        what = _zero_at(script, operand, context)
        if what is None or guarded(script, operand, context):
            continue
        yield hit(
            script,
            node,
            f"{shown(script, node)}: {what}, where the root's derivative is infinite: the backward pass gives inf * 0 = NaN at any loss scale.",
            remedy="Add a constant inside the root (torch.sqrt(x + 1e-12) in fp32, 1e-6 in fp16), or use torch.linalg.vector_norm or torch.cdist.",
        )


def _roots(script: Script) -> Iterator[tuple[ast.expr, ast.expr, Context]]:
    for op, context in script.ops("sqrt"):
        yield op.node, op.operand, context
    for op, context in script.ops("pow"):
        if script.number(op.argument(0, "exponent"), context) == 0.5:
            yield op.node, op.operand, context
    for node in script.operators.get(ast.Pow, ()):
        if script.number(node.right, script.contexts[node]) == 0.5:
            yield node, node.left, script.contexts[node]


def _zero_at(script: Script, node: ast.expr, context: Context) -> str | None:
    """When an expression is exactly zero, for the shapes that this rule is about."""
    node, context = script.resolve(node, context)
    op = script.op(node)
    if op is not None and (op.name == "mse_loss" or _is_mse(script, node, context)):
        return "it is exactly 0 for a perfect prediction"
    if _multiplied_out(script, node, context):
        return "it is 0 or negative by rounding where both sides are nearly equal"
    reduced = reduction(script, node, "sum", "mean")
    if reduced is None:
        return "it is exactly 0 for a perfect prediction" if _is_mse(script, node, context) else None
    base = square_of(script, script.resolve(reduced.operand, context)[0])
    if base is None:
        return None
    base, _ = script.resolve(base, context)
    while (inner := script.op(base)) is not None and inner.name in ("float", "double", "abs", "to", "contiguous", "view"):
        base = inner.operand
    if isinstance(base, ast.BinOp) and isinstance(base.op, ast.Sub):
        return "it is exactly 0 where both sides are equal"
    return None


def _multiplied_out(script: Script, node: ast.expr, context: Context) -> bool:
    """`a2 + b2 - 2 * a @ b.t()`: sums and a difference, with a matrix product among what is subtracted."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return False
    if isinstance(node.op, ast.Sub) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add):
        subtracted, _ = script.resolve(node.right, context)
        calls = (script.op(part) for part in within(subtracted, ast.Call) if isinstance(part, ast.Call))
        product = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult) for part in ast.walk(subtracted))
        twice = any(isinstance(part, ast.Constant) and part.value in (2, 2.0) for part in ast.walk(subtracted))
        return twice and (product or any(op is not None and op.name in ("mm", "matmul", "bmm", "einsum") for op in calls))
    return any(_multiplied_out(script, side, context) for side in (node.left, node.right))


def _is_mse(script: Script, node: ast.expr, context: Context) -> bool:
    if not isinstance(node, ast.Call):
        return False
    values = script.values(node.func, context)
    return any(isinstance(value, ast.Call) and (script.qualname(value.func) or "") == "torch.nn.MSELoss" for value, _ in values)


RULE = Rule(code="CFG017", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="model-numerics", check=check)
