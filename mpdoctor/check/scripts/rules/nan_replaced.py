"""NaN in the loss, the gradients or the activations is replaced by a number.

What it looks for
`torch.nan_to_num`, `torch.where(torch.isnan(x), ...)`, `x[torch.isnan(x)] = ...` and `if torch.isnan(x): x = ...` on losses, gradients,
weights and on values inside a module. Cleaning of input data is left alone.

Why training breaks
It removes the evidence, not the fault: the batch, the overflow or the operation that made the NaN stays. Replaced in the loss, its
gradient is still NaN, since the branch that made it is differentiated too. Replaced in gradients or weights, the step is wrong in
silence, and a GradScaler, which lowers its scale only when it sees inf or NaN, keeps a scale that is too high.

When it is fine
For metrics, for data with known gaps, and for a value whose NaN is defined to mean zero (the loss of an empty selection).

Example
```python script bad
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        for p in model.parameters():
            p.grad = torch.nan_to_num(p.grad)
        optimizer.step()
```

Instead
```python script good
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
```

How to confirm
`mpdoctor replay` runs the step and names the op that makes the first NaN, before it is replaced.

References
PyTorch, `torch.nan_to_num`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.differentiable import differentiable
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script, same, within
from mpdoctor.check.scripts.patterns import mentions
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_TESTS = ("isnan", "isinf", "isfinite")
_LOSS = ("loss",)
_INNER = ("logit", "hidden", "score", "attn", "attention", "feature", "embedding", "activation", "ratio", "prob", "logp")


def check(script: Script) -> Iterator[Hit]:
    """Find replaced NaN."""
    for op, context in script.ops("nan_to_num"):
        yield from _judge(script, op.node, op.operand, context)
    for op, context in script.ops("where"):
        arms = op.args if op.function else (op.operand, *op.args[1:])
        condition = op.operand if op.function else (op.args[0] if op.args else None)
        tested = _tested(script, condition, context) if condition is not None else None
        if tested is not None and any(same(tested, arm) for arm in arms):
            yield from _judge(script, op.node, tested, context)
    for assignment, context in script.subscripts:
        target = assignment.targets[0]
        tested = _tested(script, target.slice, context) if isinstance(target, ast.Subscript) else None
        if tested is not None and isinstance(target, ast.Subscript) and same(tested, target.value):
            yield from _judge(script, target, tested, context)
    for statement, tensor, context in _reassigned(script):
        yield from _judge(script, statement, tensor, context)


def _reassigned(script: Script) -> Iterator[tuple[ast.stmt, ast.expr, Context]]:
    """Assignments by which a name that was found to be NaN gets another value."""
    for call, context in script.named(*_TESTS):
        statement = script.statement(call)
        tested = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(statement, ast.If) or tested is None or not any(part is call for part in ast.walk(statement.test)):
            continue
        names = {script.key(part) for part in within(tested, (ast.Name, ast.Attribute)) if isinstance(part, (ast.Name, ast.Attribute))}
        negated = any(isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not) for parent in script.ancestors(call))
        finite = isinstance(call.func, (ast.Attribute, ast.Name)) and script.key(call.func).endswith("isfinite")
        for inner in statement.body if finite is negated else statement.orelse:
            if isinstance(inner, ast.Assign) and script.key(inner.targets[0]) in names and not _is_none(inner.value):
                yield inner, inner.targets[0], context


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _tested(script: Script, condition: ast.expr, context: Context) -> ast.expr | None:
    """The tensor whose NaN (or inf) a condition looks for."""
    condition, _ = script.resolve(condition, context)
    for part in within(condition, (ast.Call, ast.Compare)):
        match part:
            case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]) if same(left, right):
                return left
            case ast.Call() if (op := script.op(part)) is not None and op.name in _TESTS:
                return op.operand
    return None


def _judge(script: Script, node: ast.expr | ast.stmt, tensor: ast.expr, context: Context) -> Iterator[Hit]:
    if mentions(tensor, "grad") or _in_gradient_hook(script, node):
        what, severity = "gradients", Severity.WARNING
    elif mentions(tensor, *_LOSS):
        what, severity = "loss", Severity.WARNING
    elif script.enclosing_module(context.scope) is not None and mentions(tensor, *_INNER):
        what, severity = "activations", Severity.INFO
    else:
        return
    value = script.resolve(tensor, context)[0] if isinstance(tensor, ast.Name) else tensor
    called = script.key(value.func) if isinstance(value, ast.Call) else ""
    taken_out = called == "float" or called.endswith((".item", ".detach", ".tolist"))
    if taken_out or (autocast.gradless(script, context) and what != "gradients"):
        return
    if what != "gradients" and not differentiable(script, context):
        return
    yield hit(
        script,
        node,
        f"{shown(script, node)} replaces NaN in the {what}: what made it stays, and nothing shows it any more.",
        remedy="Find the first op that gives NaN (mpdoctor replay), and skip the step when the gradient norm is not finite.",
        severity=severity,
    )


def _in_gradient_hook(script: Script, node: ast.AST) -> bool:
    """Whether it stands in a hook on gradients: `p.register_hook(lambda grad: torch.nan_to_num(grad))`."""
    calls = (parent.func for parent in script.ancestors(node) if isinstance(parent, ast.Call))
    return any(isinstance(function, ast.Attribute) and function.attr in ("register_hook", "register_full_backward_hook") for function in calls)


RULE = Rule(code="CFG022", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="training-loop", check=check)
