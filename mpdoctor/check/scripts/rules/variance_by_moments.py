"""A variance is computed as E[x^2] - E[x]^2.

What it looks for
The mean of squares minus the square of the mean, also through names. A result that is clamped from below is left alone, and so are fp64 values.

Why training breaks
Both terms are nearly equal when the mean is large compared with the spread, and their difference loses all digits: fp32 holds 24 bits, so a
mean of 30 with a spread of 1e-4 (a silent channel with an offset) leaves only rounding errors, which are negative half of the time. The square
root of a negative number is NaN. In 16 bits a mean of 3 with a spread of 0.05 is enough.

When it is fine
When the data is centred, or the result is only reported.

Example
```python script bad
import torch
class Standardise(torch.nn.Module):
    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        var = (x * x).mean(1, keepdim=True) - mean * mean
        return (x - mean) / (var + 1e-5).sqrt()
```

Instead
```python script good
import torch
class Standardise(torch.nn.Module):
    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        var = x.var(1, keepdim=True, unbiased=False)
        return (x - mean) / (var + 1e-5).sqrt()
```

How to confirm
`mpdoctor replay` shows the negative variance and the sample that caused it.

References
xinjli/allosaurus#64; facebookresearch/fairseq#1863.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.dtypes import surely
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Place, Script
from mpdoctor.check.scripts.patterns import reduction, square_of
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_SAFE = ("clamp", "clip", "clamp_min", "relu", "maximum", "max", "abs")


def check(script: Script) -> Iterator[Hit]:
    """Find variances by the difference of moments."""
    for node in script.operators.get(ast.Sub, ()):
        context = script.contexts[node]
        if not _mean_of_squares(script, node.left, context) or not _square_of_mean(script, node.right, context):
            continue
        if _clamped(script, node) or surely(script, node, context) == "fp64":
            continue
        used = differentiable(script, context)
        yield hit(
            script,
            node,
            f"{shown(script, node)} cancels when the mean is large compared with the spread, and can be negative: its square root is then NaN.",
            remedy="Use x.var(dim, unbiased=False), or the mean of (x - mean) ** 2.",
            severity=None if used else Severity.INFO,
        )


def _mean_of_squares(script: Script, node: ast.expr, context: Context) -> bool:
    node, context = script.resolve(node, context)
    mean = _mean(script, node, context)
    return mean is not None and square_of(script, script.resolve(*mean)[0]) is not None


def _square_of_mean(script: Script, node: ast.expr, context: Context) -> bool:
    node, context = script.resolve(node, context)
    base = square_of(script, node)
    return base is not None and _mean(script, *script.resolve(base, context)) is not None


def _mean(script: Script, node: ast.expr, context: Context) -> Place | None:
    """X, for a mean of X: `X.mean(...)`, or `X.sum(...)` divided by something."""
    op = reduction(script, node, "mean")
    if op is None and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        node, context = script.resolve(node.left, context)
        op = reduction(script, node, "sum")
    return (op.operand, context) if op is not None else None


def _clamped(script: Script, node: ast.expr) -> bool:
    for parent in script.ancestors(node):
        op = script.op(parent) if isinstance(parent, ast.expr) else None
        if op is not None and op.name in _SAFE:
            return True
    return False


RULE = Rule(code="CFG015", severity=Severity.WARNING, confidence=Confidence.HIGH, cause="model-numerics", check=check)
