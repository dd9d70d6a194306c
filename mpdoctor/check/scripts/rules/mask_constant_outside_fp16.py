"""A mask is filled with a constant that fp16 cannot hold.

What it looks for
`masked_fill`, `fill_`, `full(..., dtype=torch.float16)` with a finite constant beyond 65504 such as -1e9; less strictly the same constant in
`torch.where`, in an assignment to `x[...]`, and as a factor of a mask (`(1 - mask) * -1e9`). Where nothing shows that the code runs in fp16
it is only noted, and where the script is plainly bf16 it is silent.

Why training breaks
`masked_fill` on an fp16 tensor raises "value cannot be converted to type c10::Half without overflow" at the first use of fp16. The
other forms give -inf: harmless for one masked entry, but a row that is masked as a whole becomes NaN in softmax, which is what the finite
constant was meant to prevent.

When it is fine
In fp32 and bf16, and where the tensor is cast to fp32 before. Under autocast on CUDA the outputs of softmax, exp and sum are fp32 too.

Example
```python script bad
import torch
class Attention(torch.nn.Module):
    def forward(self, q, k, v, hidden):
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(hidden, -1e9)
        return scores.softmax(-1) @ v
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(*batch).mean()
```

Instead
```python script good
import torch
class Attention(torch.nn.Module):
    def forward(self, q, k, v, hidden):
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        return scores.softmax(-1) @ v
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(*batch).mean()
```

How to confirm
`mpdoctor replay` shows the exception with its line, or the first -inf and the row that becomes NaN.

References
NVIDIA/apex#1052; facebookresearch/fairseq#3575; huggingface/lerobot PR#710.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.dtypes import WIDE, dtypes, surely
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import rewrite
from mpdoctor.check.scripts.patterns import mentions
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.numerics import FP16
from mpdoctor.core.rule import Hit, Rule

_FP32_UNDER_AUTOCAST = ("softmax", "log_softmax", "exp", "log", "sum", "cumsum", "norm", "cosine_similarity", "cdist", "pow", "softplus")
_RAISES = "masked_fill raises on an fp16 tensor: the constant is outside its range"
_GIVES_INF = "in fp16 this gives -inf, and a row that is masked as a whole becomes NaN in softmax"


def check(script: Script) -> Iterator[Hit]:
    """Find mask constants beyond fp16's range."""
    for op, context in script.ops("masked_fill", "fill"):
        constant = op.argument(0 if op.name == "fill" else 1, "value")
        if constant is not None and _outside(script, constant, context):
            operand = op.operand if isinstance(op.operand, ast.Name) else None
            yield from _judge(script, op.node, constant, op.operand, context, raises=True, named=operand)
    for op, context in script.ops("full", "full_like", "new_full"):
        constant = op.argument(0, "fill_value")
        if constant is not None and _outside(script, constant, context) and dtypes(script, op.keywords.get("dtype"), context) == {"fp16"}:
            yield _hit(script, op.node, constant, "full raises: the constant is outside fp16's range", None, Severity.ERROR, Confidence.HIGH, None)
    for op, context in script.ops("where"):
        arms = (op.argument(0, "input"), op.argument(1, "other")) if op.function else (op.argument(1, "other"), op.operand)
        for constant, other in (arms, arms[::-1]):
            if constant is not None and other is not None and _outside(script, constant, context):
                yield from _judge(script, op.node, constant, other, context, raises=False, named=None)
    for node in script.operators.get(ast.Mult, ()):
        context = script.contexts[node]
        for mask, constant in ((node.left, node.right), (node.right, node.left)):
            if mentions(mask, "mask", "pad", "visible", "hidden") and _outside(script, constant, context):
                yield from _judge(script, node, constant, mask, context, raises=False, named=None)
    for assignment, context in script.subscripts:
        target = assignment.targets[0]
        if isinstance(target, ast.Subscript) and mentions(target.slice, "mask", "pad") and _outside(script, assignment.value, context):
            yield from _judge(script, assignment.value, assignment.value, target.value, context, raises=False, named=None)


def _outside(script: Script, node: ast.expr, context: Context) -> bool:
    value = script.number(node, context)
    return value is not None and FP16.max < abs(value) < float("inf")


def _judge(
    script: Script, node: ast.expr, constant: ast.expr, tensor: ast.expr, context: Context, *, raises: bool, named: ast.Name | None
) -> Iterator[Hit]:
    """How bad a constant is depends on what shows that the tensor is fp16."""
    if surely(script, tensor, context) in WIDE:
        return
    what = _RAISES if raises else _GIVES_INF
    seen = precision.at(script, context, "fp16")
    op = script.op(script.resolve(tensor, context)[0])
    if seen is not None:
        if op is not None and op.name in _FP32_UNDER_AUTOCAST and precision.pure(script, "fp16") is None:
            return
        severity = Severity.ERROR if raises else Severity.WARNING
        yield _hit(script, node, constant, what, seen, severity, Confidence.HIGH if raises else Confidence.MEDIUM, named)
    elif raises and script.enclosing_module(context.scope) is not None and not precision.visible(script, "bf16"):
        yield _hit(script, node, constant, f"should the model ever run in fp16, {what}", None, Severity.INFO, Confidence.LOW, named)


def _hit(
    script: Script,
    node: ast.expr,
    constant: ast.expr,
    what: str,
    seen: precision.Seen | None,
    severity: Severity,
    confidence: Confidence,
    named: ast.Name | None,
) -> Hit:
    value = script.number(constant, script.context(constant)) or 0.0
    fix = f"torch.finfo({named.id}.dtype).{'min' if value < 0 else 'max'}" if named is not None else None
    literal = not isinstance(constant, (ast.Name, ast.Attribute))
    return hit(
        script,
        node,
        f"{shown(script, constant)} is beyond fp16's range (65504); {what}.",
        remedy=f"Fill with {fix or 'torch.finfo(scores.dtype).min'}, or with float('-inf') where no row can be masked as a whole.",
        edits=rewrite(script.source, constant, fix) if fix and literal and "torch" in script.imports else (),
        because=((seen.node, seen.text),) if seen is not None else (),
        severity=severity,
        confidence=confidence,
        cause="model-numerics",
    )


RULE = Rule(code="CFG011", severity=Severity.ERROR, cause="model-numerics", check=check)
