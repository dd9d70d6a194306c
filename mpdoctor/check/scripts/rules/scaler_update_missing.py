"""`scaler.step` is called but `scaler.update` never is.

What it looks for
`scaler.step(optimizer)` in a script that nowhere calls `update()` on a scaler.

Why training breaks
`update` moves the scale and forgets which optimizers were stepped. Without it the second `scaler.step` raises "step() has already been called
since the last update()" (torch 2.13). Code that hides the error keeps the first scale (65536), at which gradients may overflow in every step.

When it is fine
When another file calls `update` on the same scaler. Then the finding is a warning: it is an error only where this script makes the scaler.

Example
```python script bad
import torch
scaler = torch.amp.GradScaler("cuda")
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
```

Instead
```python script good
import torch
scaler = torch.amp.GradScaler("cuda")
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
```

How to confirm
`mpdoctor replay` runs two steps: the second raises.

References
PyTorch, `torch.amp.GradScaler.update`; Automatic Mixed Precision examples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.objects import Role, role
from mpdoctor.check.scripts.patch import Edits, insert_after
from mpdoctor.check.scripts.steps import Do, Step, sequences
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find scalers that step and never update."""
    for call, context in script.named("update"):
        if isinstance(call.func, ast.Attribute) and role(script, call.func.value, context) is Role.SCALER:
            return
    for sequence in sequences(script):
        last: dict[str, Step] = {step.subject: step for step in sequence if step.do is Do.SCALER_STEP}
        for scaler, step in last.items():
            if _handed_on(script, scaler):
                continue
            made_here = any(_is_on(call) for call in script.calls.get("GradScaler", ()))
            fix = f"{scaler}.update()"
            yield hit(
                script,
                step.node,
                f"{shown(script, step.node)}, but nothing calls {fix}: the scale never moves, and the second step raises.",
                remedy=f"Call {fix} once after the step (after the last one, where there are several optimizers).",
                edits=_updating(script, step) if made_here else (),
                severity=None if made_here else Severity.WARNING,
                confidence=None if made_here else Confidence.MEDIUM,
            )


def _updating(script: Script, step: Step) -> Edits:
    """An update behind the step, by the name that its function has for the scaler."""
    if not isinstance(step.node, ast.Call) or not isinstance(step.node.func, ast.Attribute):
        return ()
    return insert_after(script.source, script.statement(step.node), f"{script.source.segment(step.node.func.value)}.update()")


def _is_on(call: ast.Call) -> bool:
    return not any(keyword.arg == "enabled" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False for keyword in call.keywords)


def _handed_on(script: Script, scaler: str) -> bool:
    """Whether the scaler is passed to a function that is not the script's own, which may update it."""
    for calls in script.calls.values():
        for call in calls:
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(script.key(argument) == scaler for argument in arguments if isinstance(argument, (ast.Name, ast.Attribute))):
                callee = script.callee(call, script.contexts[call])
                if callee is None and not (isinstance(call.func, ast.Name) and call.func.id in ("print", "isinstance", "id", "repr")):
                    return True
    return False


RULE = Rule(code="CFG002", severity=Severity.ERROR, cause="loss-scaling", check=check)
