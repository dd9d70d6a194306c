"""The lowest finite number is added to something negative, and becomes -inf.

What it looks for
Two masks filled with `torch.finfo(dtype).min` that are added; and, where the code runs in fp16, one such mask added to attention scores.
A sum that is clamped again is left alone.

Why training breaks
`finfo.min + finfo.min` is -inf in every format. In fp16 the spacing at -65504 is 32, so a score of -16 or less is enough: -65504 - 16 rounds to -inf.
A row that is masked as a whole (left padding, an empty sample) is then all -inf, and softmax returns NaN for it, although the mask held
no -inf.

When it is fine
One mask added to scores in bf16 or fp32: the spacing at their lowest number is so large that a score changes nothing. Rows that always
see at least one key stay finite too.

Example
```python script bad
import torch
def attention_bias(padding, causal, dtype):
    low = torch.finfo(dtype).min
    padding_mask = torch.where(padding, low, 0.0)
    causal_mask = torch.where(causal, low, 0.0)
    return padding_mask + causal_mask
```

Instead
```python script good
import torch
def attention_bias(padding, causal, dtype):
    low = torch.finfo(dtype).min
    return torch.where(padding | causal, low, 0.0)
```

How to confirm
`mpdoctor replay` names the addition as the origin of -inf and the row that becomes NaN.

References
huggingface/transformers#25311; huggingface/transformers PR#27114; NVIDIA-NeMo/Automodel PR#2658.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.dtypes import WIDE, surely
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patterns import finfo_min, mentions, operands
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find sums with the lowest finite number."""
    for node in script.operators.get(ast.Add, ()):
        parent = script.parents[node]
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add):
            continue  # the whole chain is judged at its outermost sum
        context = script.contexts[node]
        terms = list(operands(node, ast.Add))
        low = [term for term in terms if _is_mask(script, term, context)]
        if not low or _clamped(script, node):
            continue
        if len(low) > 1:
            yield hit(
                script,
                node,
                f"{shown(script, low[0])} and {shown(script, low[1])} both hold finfo.min: where both mask, their sum is -inf, "
                "and a row masked as a whole becomes NaN in softmax.",
                remedy="Combine the boolean masks first (a | b) and fill once.",
            )
        elif (seen := precision.at(script, context, "fp16")) and surely(script, node, context) not in WIDE:
            yield hit(
                script,
                node,
                f"{shown(script, low[0])} holds finfo.min; in fp16 adding a score of -16 gives -inf, and a row masked as a whole becomes NaN.",
                remedy="Fill the scores instead of adding (scores.masked_fill(mask, torch.finfo(scores.dtype).min)), or compute in fp32 or bf16.",
                because=((seen.node, seen.text),),
                confidence=Confidence.MEDIUM,
            )


def _is_mask(script: Script, node: ast.expr, context: Context, depth: int = 0) -> bool:
    """Whether a value is made of finfo.min and not of scores: a filled tensor, a `where` with a constant, a mask times the constant."""
    if depth > 5:
        return False
    node, context = script.resolve(node, context)
    if finfo_min(script, node, context):
        return True
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for side, other in ((left, right), (right, left)):
                if finfo_min(script, side, context) and (mentions(other, "mask", "pad") or isinstance(other, ast.BinOp)):
                    return True
            return False
        case ast.Subscript(value=value):
            return _is_mask(script, value, context, depth + 1)
    op = script.op(node)
    if op is None:
        return False
    if op.name in ("full", "full_like", "new_full"):
        return any(finfo_min(script, argument, context) for argument in (*op.args, *op.keywords.values()))
    if op.name == "where":
        return any(_is_mask(script, argument, context, depth + 1) for argument in op.args)
    if op.name == "masked_fill":
        filled = op.argument(1, "value")
        made = script.op(script.resolve(op.operand, context)[0])
        is_scores = made is None or made.name not in ("zeros", "zeros_like", "new_zeros", "full", "to", "float", "masked_fill", "empty")
        return filled is not None and finfo_min(script, filled, context) is not None and (not is_scores or mentions(op.operand, "mask"))
    if op.name in ("triu", "tril", "to", "type_as", "expand", "unsqueeze", "view", "repeat", "float", "half", "clone", "contiguous", "reshape"):
        return _is_mask(script, op.operand, context, depth + 1)
    return False


def _clamped(script: Script, node: ast.expr) -> bool:
    for parent in script.ancestors(node):
        op = script.op(parent) if isinstance(parent, ast.expr) else None
        if op is not None and op.name in ("clamp", "clip", "clamp_min", "max", "maximum"):
            return True
    return False


RULE = Rule(code="CFG012", severity=Severity.WARNING, cause="model-numerics", check=check)
