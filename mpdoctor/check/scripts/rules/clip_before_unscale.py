"""Gradients are clipped while they are still multiplied by the loss scale.

What it looks for
`clip_grad_norm_` or `clip_grad_value_` between `scaler.scale(loss).backward()` and `scaler.step(optimizer)`, without
`scaler.unscale_(optimizer)` before it. The script's own functions are followed. With accelerate in fp16 the same holds for torch's
clipping functions; accelerate's own `accelerator.clip_grad_norm_` unscales first.

Why training breaks
After a scaled backward pass every gradient is `scale` times too large; GradScaler starts at 65536. A true norm of 10 is then 655360, so
clipping to 1.0 divides the gradients by 655360, and `scaler.step` divides by the scale once more: the update has norm 1/65536 = 1.5e-5
instead of 1. Nothing overflows and nothing is logged as wrong: training just crawls, and a logged gradient norm always equals the threshold.

When it is fine
Never with a scaler that is on. `GradScaler(enabled=False)` makes the order irrelevant.

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
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
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
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
```

How to confirm
`mpdoctor replay` runs the step with the clipping moved behind the unscaling and compares the gradient norms.

References
PyTorch, Automatic Mixed Precision examples, "Gradient clipping"; Lightning-AI/pytorch-lightning#9599; milesial/Pytorch-UNet#468.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import insert_before
from mpdoctor.check.scripts.steps import Do, Sequence, Step, sequences
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule

_UPDATES = (Do.OPTIMIZER_STEP, Do.SCALER_STEP, Do.SCALER_UPDATE)


def check(script: Script) -> Iterator[Hit]:
    """Find clipping steps whose gradients are scaled."""
    accelerated = next((seen for name, seen in precision.settings(script) if name == "fp16" and script.key(_name(seen.node)) == "Accelerator"), None)
    for sequence in sequences(script):
        for index, clip in enumerate(sequence):
            if clip.do is not Do.CLIP:
                continue
            backward = _backward(sequence, index, Do.SCALED_BACKWARD)
            step = _after(sequence, index, clip, Do.SCALER_STEP)
            if backward is not None and step is not None and backward.meets(step):
                yield _hit(script, clip, backward, step, safe=_can_unscale_before(sequence, clip, backward, step))
            elif accelerated is not None and (backward := _backward(sequence, index, Do.FRAMEWORK_BACKWARD)) is not None:
                yield hit(
                    script,
                    clip.node,
                    f"{shown(script, clip.node)} clips gradients still multiplied by accelerate's loss scale: they are cut to threshold/scale.",
                    remedy=f"Use {backward.subject}.clip_grad_norm_(...) (or clip_grad_value_), which unscales first.",
                    because=((accelerated.node, accelerated.text), (backward.node, "the loss is scaled here")),
                )


def _name(node: ast.expr) -> ast.expr:
    function = node.func if isinstance(node, ast.Call) else node
    return ast.Name(id=function.attr) if isinstance(function, ast.Attribute) else function


def _backward(sequence: Sequence, index: int, kind: Do) -> Step | None:
    """The backward pass whose gradients are clipped, if nothing unscales or uses them in between."""
    clip = sequence[index]
    for step in reversed(sequence[:index]):
        if not step.meets(clip):
            continue
        if step.do is kind:
            return step
        if step.do is Do.UNSCALE or step.do in _UPDATES:
            return None
    return None


def _after(sequence: Sequence, index: int, clip: Step, kind: Do) -> Step | None:
    for step in sequence[index + 1 :]:
        if step.meets(clip):
            if step.do is kind:
                return step
            if step.do in (Do.BACKWARD, Do.SCALED_BACKWARD, Do.ZERO_GRAD, Do.OPTIMIZER_STEP):
                return None
    return None


def _unscaling(script: Script, step: Step) -> str:
    """The call that unscales, with the names that the function of the step has for scaler and optimizer."""
    assert isinstance(step.node, ast.Call) and isinstance(step.node.func, ast.Attribute)
    return f"{script.source.segment(step.node.func.value)}.unscale_({script.source.segment(step.node.args[0])})"


def _can_unscale_before(sequence: Sequence, clip: Step, backward: Step, step: Step) -> bool:
    """Whether `unscale_` right before this clip runs once per step, and no second one is needed: it raises when it runs twice."""
    between = [other for other in sequence[sequence.index(backward) : sequence.index(step)] if other.do is Do.CLIP and other.meets(clip)]
    until_next = takewhile(lambda other: other.do is not Do.SCALED_BACKWARD, sequence[sequence.index(backward) + 1 :])
    steps = [other for other in until_next if other.do is Do.SCALER_STEP and other.subject == step.subject and other.meets(step)]
    covered = all(other.context.guards[: len(clip.context.guards)] == clip.context.guards for other in between)
    runs_with_the_step = clip.context.guards[: len(step.context.guards)] == step.context.guards and clip.context.loops == step.context.loops
    named = isinstance(step.node, ast.Call) and isinstance(step.node.func, ast.Attribute) and bool(step.node.args)
    return named and between[0] is clip and covered and runs_with_the_step and len(steps) == 1 and clip.context.scope is step.context.scope


def _hit(script: Script, clip: Step, backward: Step, step: Step, *, safe: bool) -> Hit:
    fix = f"{step.subject}.unscale_({step.other})"
    return hit(
        script,
        clip.node,
        f"{shown(script, clip.node)} clips gradients that are still multiplied by the loss scale (65536 at the start): "
        "after the scaler divides by it the update is threshold/scale, and training crawls.",
        remedy=f"Call {fix} before clipping.",
        edits=insert_before(script.source, script.statement(clip.node), _unscaling(script, step)) if safe else (),
        because=((backward.node, "the loss is scaled here"), (step.node, "the scaler divides by the scale only here")),
    )


RULE = Rule(code="CFG001", severity=Severity.ERROR, cause="training-loop", check=check)
