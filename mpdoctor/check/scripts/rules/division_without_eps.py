"""A tensor is divided by a norm, a spread or a count that may be zero.

What it looks for
In 16-bit scripts and in loss functions: division by `norm()`, `std()`, or the sum of a mask or of weights, without a constant added or a clamp.

Why training breaks
A zero row has norm 0, a constant row has standard deviation 0, an empty mask has sum 0: the quotient is 0/0 = NaN or x/0 = inf. In fp16
values below 6e-8 count as 0 too, and a sum of squares is there for entries below 2.4e-4.

When it is fine
When such rows cannot occur, which is not visible in the script: the finding is only a note.

Example
```python script bad
import torch
def masked_loss(errors, mask):
    return (errors * mask).sum() / mask.sum()
```

Instead
```python script good
import torch
def masked_loss(errors, mask):
    return (errors * mask).sum() / mask.sum().clamp(min=1)
```

How to confirm
`mpdoctor replay` names the division as the origin, and the batch row that carries it.

References
pytorch/pytorch#32137; pytorch/pytorch#70348.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patterns import guarded, leaves_graph, mentions
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_MASKS = ("mask", "valid", "weight", "keep", "visible", "num_", "count", "padding")


def check(script: Script) -> Iterator[Hit]:
    """Find divisions by what may be zero."""
    for node in script.operators.get(ast.Div, ()):
        context = script.contexts[node]
        zero = _zero(script, node.right, context)
        if zero is None or not differentiable(script, context) or leaves_graph(script, node) or guarded(script, node.right, context):
            continue
        if "loss" not in context.scope.name.rpartition(".")[2].lower() and not any(precision.at(script, context, name) for name in ("fp16", "bf16")):
            continue
        yield hit(
            script,
            node,
            f"{shown(script, node.right)} is 0 for {zero}: the division gives NaN or inf.",
            remedy="Add a constant that the format can hold (1e-6 or more in fp16), or clamp the divisor from below.",
        )


def _zero(script: Script, node: ast.expr, context: Context) -> str | None:
    """For which input a divisor is zero, for the shapes that this rule is about."""
    node, _ = script.resolve(node, context)
    op = script.op(node)
    while op is not None and op.name in ("unsqueeze", "view", "expand", "expand_as", "float", "reshape"):
        op = script.op(op.operand)
    if op is None:
        return None
    if op.name in ("norm", "vector_norm"):
        return "a zero row"
    if op.name == "std":
        return "a constant row"
    if op.name == "sum" and (mentions(op.operand, *_MASKS) or any(isinstance(part, ast.Compare) for part in ast.walk(op.operand))):
        return "an empty selection"
    return None


RULE = Rule(code="CFG018", severity=Severity.INFO, confidence=Confidence.LOW, cause="model-numerics", check=check)
