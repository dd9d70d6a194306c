"""A small constant that should prevent a division by zero is itself zero in fp16.

What it looks for
A constant of at most 3e-8 that guards a computation in fp16: Adam's `eps` over fp16 weights; `x + 1e-12`, `clamp(min=1e-8)` and
`F.normalize(x, eps=1e-12)` in modules whose weights are cast to fp16; `x.std() + 1e-8` under fp16 autocast. The constant is followed through names,
attributes and defaults. In fp16 or bf16, also a bound such as `1 - 1e-6`, which rounds to 1.

Why training breaks
The smallest positive fp16 number is 6.0e-8 (and the smallest with full precision 6.1e-5); a constant up to half of it rounds to 0.
`rsqrt(var + 1e-12)` of a constant row is then inf, and inf times 0 is NaN. Just below 1 the spacing of fp16 is 4.9e-4 and of bf16
3.9e-3, so `log(1 - p.clamp(max=1 - 1e-6))` is still log(0).

When it is fine
In fp32, where 1e-8 and 1e-12 are ordinary numbers, so also under autocast in the ops that autocast runs in fp32 (norm, sum, softmax,
layer_norm on CUDA). The norm layers of torch compute their statistics in fp32 and are not reported.

Example
```python script bad
import torch
class Norm(torch.nn.Module):
    def __init__(self, eps=1e-12):
        super().__init__()
        self.gain, self.eps = torch.nn.Parameter(torch.ones(8)), eps
    def forward(self, x):
        var = x.var(-1, keepdim=True)
        return x * torch.rsqrt(var + self.eps) * self.gain
model = Norm().half()
```

Instead
```python script good
import torch
class Norm(torch.nn.Module):
    def __init__(self, eps=1e-5):
        super().__init__()
        self.gain, self.eps = torch.nn.Parameter(torch.ones(8)), eps
    def forward(self, x):
        var = x.float().var(-1, keepdim=True)
        return (x.float() * torch.rsqrt(var + self.eps)).type_as(x) * self.gain
model = Norm().half()
```

How to confirm
`mpdoctor replay` names the op that gives inf, and shows that it is finite with its inputs in fp32.

References
pytorch/pytorch#40497; pytorch/pytorch#32137; deepspeedai/DeepSpeed#581; openai/CLIP#40.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.dtypes import WIDE, surely
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.check.scripts.weights import adam_over_low_weights
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.numerics import BF16, FP16
from mpdoctor.core.rule import Hit, Rule

_KEPT_IN_HALF = ("std", "var", "mean", "amax", "amin", "max", "abs")
"""Operations that CUDA's autocast leaves in the format of their input."""
_REMEDY = "Use an eps of at least 1e-5, or compute this in fp32 (x.float())."


def check(script: Script) -> Iterator[Hit]:
    """Find constants that vanish in the format in which they are used."""
    for found in adam_over_low_weights(script):
        if found.dtype == "fp16" and found.certain and found.eps is not None and _vanishes(found.eps):
            yield hit(
                script,
                found.optimizer,
                f"Adam's eps={found.eps:g} is 0 in fp16, the format of the weights: zero gradients give 0/0 = NaN, small ones inf.",
                remedy="Keep the weights in fp32 under autocast; if they must be fp16, use eps=1e-4.",
                because=((found.cast.node, f"the weights of {found.cast.module} become fp16"),),
                severity=Severity.ERROR,
                cause="low-precision-state",
            )
    pure, mixed = precision.pure(script, "fp16"), precision.mixed(script, "fp16")
    if pure is not None or mixed is not None:
        for node, guarded, constant, context in _guards(script):
            value = script.number(constant, context)
            if value is None or not _vanishes(value) or not differentiable(script, context) or surely(script, guarded, context) in WIDE:
                continue
            op = script.op(script.resolve(guarded, context)[0])
            if pure is not None and script.enclosing_module(context.scope) is not None:
                yield _hit(script, node, value, pure, Severity.WARNING)
            elif op is not None and op.name in _KEPT_IN_HALF and (seen := precision.at(script, context, "fp16")):
                yield _hit(script, node, value, seen, Severity.INFO)
    yield from _near_one(script)


def _vanishes(value: float) -> bool:
    return 0 < value <= FP16.smallest_subnormal / 2


def _guards(script: Script) -> Iterator[tuple[ast.expr, ast.expr, ast.expr, Context]]:
    """Expressions that keep a value away from zero: the whole, the value, the constant, the context."""
    for node in script.operators.get(ast.Add, ()):
        context = script.contexts[node]
        yield node, node.left, node.right, context
        yield node, node.right, node.left, context
    for op, context in script.ops("clamp", "clip", "clamp_min"):
        lower = op.argument(0, "min")
        if lower is not None:
            yield op.node, op.operand, lower, context
    for op, context in script.ops("normalize", "cosine_similarity"):
        if "eps" in op.keywords:
            yield op.node, op.operand, op.keywords["eps"], context


def _hit(script: Script, node: ast.expr, value: float, seen: precision.Seen, severity: Severity) -> Hit:
    return hit(
        script,
        node,
        f"{value:g} in {shown(script, node)} rounds to 0 in fp16 (smallest positive number 6e-8), so it guards nothing.",
        remedy=_REMEDY,
        because=((seen.node, seen.text),),
        severity=severity,
        confidence=Confidence.HIGH if severity is Severity.WARNING else Confidence.LOW,
    )


def _near_one(script: Script) -> Iterator[Hit]:
    """Upper bounds just below 1 that round to 1."""
    for op, context in script.ops("clamp", "clip", "clamp_max"):
        upper = op.argument(0 if op.name == "clamp_max" else 1, "max")
        value = script.number(upper, context)
        if upper is None or value is None or not 0.5 < value < 1:
            continue
        for name, number_format in (("fp16", FP16), ("bf16", BF16)):
            seen = precision.at(script, context, name)
            if seen is not None and 1 - value <= number_format.spacing_at_one / 4 and surely(script, op.operand, context) not in WIDE:
                yield hit(
                    script,
                    op.node,
                    f"The bound {1 - value:g} below 1 in {shown(script, op.node)} rounds to 1 in {name}, whose spacing there is "
                    f"{number_format.spacing_at_one / 2:g}: log(1 - p) behind it is -inf.",
                    remedy="Compute this in fp32 (x.float()), or from logits (logsigmoid, log_softmax).",
                    because=((seen.node, seen.text),),
                    severity=Severity.INFO,
                    confidence=Confidence.MEDIUM,
                )
                break


RULE = Rule(code="CFG010", severity=Severity.WARNING, cause="model-numerics", check=check)
