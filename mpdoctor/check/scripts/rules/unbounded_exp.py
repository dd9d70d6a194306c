"""`exp` of a value without an upper bound.

What it looks for
`exp` of a difference of log-probabilities (a policy ratio, an importance weight), and in code that runs in 16 bits any `exp` whose argument
has no visible bound. Parameters that the script clamps elsewhere are left alone.

Why training breaks
exp overflows to inf above 88.7 in fp32 and bf16, and above 11.09 in fp16. A ratio of inf times an advantage of exactly 0 is NaN; a minimum
with a clipped ratio does not protect, because the unclipped branch is computed and differentiated as well.

When it is fine
When the argument is bounded by how it is made, which is often so and not visible here: the finding is only a note.

Example
```python script bad
import torch
def policy_loss(log_prob, old_log_prob, advantage):
    ratio = torch.exp(log_prob - old_log_prob)
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
```

Instead
```python script good
import torch
def policy_loss(log_prob, old_log_prob, advantage):
    ratio = torch.exp((log_prob - old_log_prob).clamp(-20, 20))
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
```

How to confirm
`mpdoctor replay` names `exp` as the origin with its argument, and the sample that has it.

References
radixark/miles PR#1363; verl-project/verl PR#1779.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.exponentials import written_out
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script, once, same
from mpdoctor.check.scripts.patterns import leaves_graph, mentions, never_large
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_LOG_PROBABILITIES = ("log_prob", "logprob", "logp", "lp", "log_ratio", "logratio", "log_pi", "log_p", "log_q", "log_w")


def check(script: Script) -> Iterator[Hit]:
    """Find exponentials without a bound."""
    for op, context in script.ops("exp", "expm1"):
        if not differentiable(script, context) or leaves_graph(script, op.node) or never_large(script, op.operand, context):
            continue
        value, there = script.resolve(op.operand, context)
        if _is_log_probability(op.operand) or _is_zero(script, value, there) or mentions(value, "arange"):
            continue  # (a range of positions is no parameter)
        if script.key(op.operand).rpartition(".")[2] in _clamped_names(script):
            continue
        seen = precision.at(script, context, "fp16") or precision.at(script, context, "bf16")
        ratio = _is_log_ratio(script, value) or mentions(op.operand, "log_ratio", "logratio")
        if seen is None and not ratio:
            continue
        if any(op.node in found.parts for found in written_out(script)):
            continue  # `naive-softmax` says it
        yield hit(
            script,
            op.node,
            f"{shown(script, op.node)} overflows above 88.7 (11.09 in fp16)" + (", and inf times an advantage of 0 is NaN." if ratio else "."),
            remedy="Clamp the exponent, e.g. .clamp(-20, 20).",
            because=((seen.node, seen.text),) if seen is not None else (),
        )


def _is_log_ratio(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and mentions(node, *_LOG_PROBABILITIES)


def _is_log_probability(node: ast.expr) -> bool:
    """Whether an exponent is itself a log-probability, which is never above 0 for classes and tokens."""
    return isinstance(node, (ast.Name, ast.Attribute)) and mentions(node, "log_prob", "logprob", "logp") and not mentions(node, "diff", "ratio")


def _is_zero(script: Script, node: ast.expr, context: Context) -> bool:
    """Whether it is `x - x.detach()`, which only carries a gradient."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    sides = []
    for side in (node.left, node.right):
        value, _ = script.resolve(side, context)
        op = script.op(value)
        sides.append(op.operand if op is not None and op.name == "detach" else side)
    return same(sides[0], sides[1])


@once
def _clamped_names(script: Script) -> frozenset[str]:
    """Last names of everything that the script clamps somewhere."""
    found = set()
    for op, _ in script.ops("clamp", "clip", "clamp_max"):
        owner = op.operand
        while isinstance(owner, ast.Attribute) and owner.attr == "data":
            owner = owner.value
        if isinstance(owner, (ast.Name, ast.Attribute)):
            found.add(script.key(owner).rpartition(".")[2])
    return frozenset(found)


RULE = Rule(code="CFG020", severity=Severity.INFO, confidence=Confidence.LOW, cause="model-numerics", check=check)
