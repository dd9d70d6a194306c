"""The optimizer steps by itself although the loss was scaled.

What it looks for
`optimizer.step()` after `scaler.scale(loss).backward()`, on a path on which no `scaler.step(optimizer)` takes its place. Branches that
exclude each other (`if use_amp: scaler.step(optimizer) else: optimizer.step()`) are told apart.

Why training breaks
The gradients are still multiplied by the scale: the step is 65536 times too large for SGD (Adam divides most of it out again, but not
its eps and not the moments when the scale changes), weight decay and clipping act at the wrong ratio, and a step with inf or NaN
gradients is taken instead of skipped, which makes every weight NaN.

When it is fine
When the scaler is disabled, or when the optimizer that steps got its gradients from another, unscaled loss.

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
        optimizer.step()
        scaler.update()
```

Instead
```python script good
import torch
scaler = torch.amp.GradScaler("cuda")
def train(model, optimizer, loader, use_amp):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16, enabled=use_amp):
            loss = model(x, y)
        if use_amp:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
```

How to confirm
`mpdoctor replay` shows the gradients that the optimizer sees: their norm is the true one times the scale.

References
PyTorch, Automatic Mixed Precision examples, "Typical mixed precision training".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.guards import alternatives
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import Edits, insert_after, rewrite, together
from mpdoctor.check.scripts.steps import Do, Sequence, Step, sequences
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find optimizer steps on gradients of a scaled loss."""
    for sequence in sequences(script):
        for index, step in enumerate(sequence):
            if step.do is not Do.OPTIMIZER_STEP:
                continue
            backward = _scaled(sequence, index)
            replaced = [other for other in sequence if other.do is Do.SCALER_STEP and alternatives(other.context, step.context)]
            if backward is None or replaced:
                continue
            stepped = next((other for other in sequence if other.do is Do.SCALER_STEP and other.other == step.subject and other.meets(step)), None)
            fix = f"{backward.subject}.step({step.subject})"
            also = " besides the scaler's own step" if stepped is not None else ""
            yield hit(
                script,
                step.node,
                f"{shown(script, step.node)} steps{also} on gradients of a scaled loss: they are too large by the scale (65536 at the start), "
                "and inf or NaN is not skipped.",
                remedy=f"Remove it: {fix} already steps." if stepped is not None else f"Call {fix}, then {backward.subject}.update(), instead.",
                edits=_stepped_by_scaler(script, sequence, step, backward) if stepped is None else (),
                because=((backward.node, "the loss is scaled here"),),
            )


def _stepped_by_scaler(script: Script, sequence: Sequence, step: Step, backward: Step) -> Edits:
    """The scaler's step in place of the optimizer's, and its update behind it where there is none."""
    match backward.node, step.node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=scaler, attr="scale")))), ast.Call(
            func=ast.Attribute(value=optimizer), args=[], keywords=[]
        ) if backward.context.scope is step.context.scope:
            name = script.source.segment(scaler)
        case _:
            return ()
    stepping = rewrite(script.source, step.node, f"{name}.step({script.source.segment(optimizer)})")
    if any(other.do is Do.SCALER_UPDATE and other.meets(step) for other in sequence):
        return stepping
    return together(stepping, insert_after(script.source, script.statement(step.node), f"{name}.update()"))


def _scaled(sequence: Sequence, index: int) -> Step | None:
    """The scaled backward pass that made the gradients of a step; None when the last backward pass was a plain one."""
    step = sequence[index]
    plain: list[Step] = []
    for earlier in reversed(sequence[:index]):
        if not earlier.meets(step):
            continue
        if earlier.do is Do.SCALED_BACKWARD:
            return earlier if all(alternatives(earlier.context, other.context) for other in plain) else None
        if earlier.do in (Do.BACKWARD, Do.FRAMEWORK_BACKWARD):
            plain.append(earlier)
        if earlier.do is Do.OPTIMIZER_STEP and earlier.subject == step.subject:
            return None
    return None


RULE = Rule(code="CFG003", severity=Severity.ERROR, cause="training-loop", check=check)
