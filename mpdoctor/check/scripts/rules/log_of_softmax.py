"""The logarithm of a softmax or sigmoid is taken in two steps.

What it looks for
`log(softmax(x))`, `log(sigmoid(x))` and `log(1 - sigmoid(x))`, also through names and `nn.Softmax` objects, without a constant added or a clamp
in between.

Why training breaks
Softmax underflows to exactly 0 where a logit is more than 104 below the largest in fp32 (17 in fp16); log(0) is -inf, and its
gradient times 0 is NaN. Sigmoid rounds to 1 above 17 in fp32 (8.3 in fp16), so log(1 - sigmoid) does the same. `log_softmax` and `logsigmoid`
compute the logarithm directly and lose nothing.

When it is fine
When the logits are bounded, or the value only feeds a metric.

Example
```python script bad
import torch
import torch.nn.functional as F
def loss(model, x, target):
    probabilities = F.softmax(model(x), dim=-1)
    return F.nll_loss(torch.log(probabilities), target)
```

Instead
```python script good
import torch
import torch.nn.functional as F
def loss(model, x, target):
    return F.nll_loss(F.log_softmax(model(x), dim=-1), target)
```

How to confirm
`mpdoctor replay` names `log` as the origin of -inf, or its derivative in the backward pass.

References
PyTorch, `torch.nn.functional.log_softmax`: "doing these two operations separately is slower and numerically unstable".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import Edits, rewrite
from mpdoctor.check.scripts.patterns import leaves_graph
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_BETTER = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}
_LAYERS = {"Softmax": "softmax", "Sigmoid": "sigmoid"}


def check(script: Script) -> Iterator[Hit]:
    """Find logarithms of probabilities that were just computed from logits."""
    for op, context in script.ops("log", "log2", "log10"):
        if autocast.gradless(script, context) or leaves_graph(script, op.node):
            continue
        found = _probability(script, op.operand, context)
        if found is None:
            continue
        name, call = found
        direct = call is op.operand and op.name == "log"
        yield hit(
            script,
            op.node,
            f"{shown(script, op.node)} takes the logarithm of a {name} that may be exactly 0: log(0) is -inf and its gradient NaN.",
            remedy=f"Use F.{_BETTER[name]} on the logits.",
            edits=_patched(script, op.node, call) if direct else (),
        )


def _probability(script: Script, node: ast.expr, context: Context) -> tuple[str, ast.expr] | None:
    """`softmax` or `sigmoid`, and the call, where a value is one of them (or 1 minus a sigmoid)."""
    node, context = script.resolve(node, context)
    match node:
        case ast.BinOp(left=ast.Constant(value=1 | 1.0), op=ast.Sub(), right=right):
            found = _probability(script, right, context)
            return found if found is not None and found[0] == "sigmoid" else None
        case ast.Call(func=layer):
            for made, _ in script.values(layer, context):  # `self.softmax(x)` with an nn.Softmax, or `nn.Softmax(-1)(x)`
                name = _LAYERS.get((script.qualname(made.func) or "").removeprefix("torch.nn.")) if isinstance(made, ast.Call) else None
                if name:
                    return name, node
    op = script.op(node)
    return (op.name, node) if op is not None and op.name in _BETTER else None


def _patched(script: Script, node: ast.Call, call: ast.expr) -> Edits:
    """For `log(F.softmax(x, dim))` it is `F.log_softmax(x, dim)`; the method form keeps its arguments too. A sigmoid has no method form."""
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="softmax")):
            text = script.source.segment(call)
            head = script.source.segment(owner)
            return rewrite(script.source, node, f"{head}.log_softmax{text[len(head) + len('.softmax') :]}")
        case ast.Call(func=ast.Attribute(attr="sigmoid"), keywords=[]) if "torch" in script.imports and (op := script.op(call)) is not None:
            return rewrite(script.source, node, f"torch.nn.functional.logsigmoid({script.source.segment(op.operand)})")
    return ()


RULE = Rule(code="CFG014", severity=Severity.WARNING, confidence=Confidence.HIGH, cause="model-numerics", check=check)
