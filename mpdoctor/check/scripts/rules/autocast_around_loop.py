"""One autocast block spans several optimizer steps, and keeps serving the weights of the first.

What it looks for
`with autocast(...)` around a loop in which an optimizer steps (also through the script's own functions and decorators), and an autocast
that is entered by hand and not left before the next step.

Why training breaks
Autocast keeps the 16-bit cast of each fp32 weight in a cache and clears it only when the outermost block ends. The optimizer changes
the fp32 weight, the cached cast stays: from the second step on the forward pass uses the weights of the first step. The loss is
flat, gradients belong to the old weights, nothing is NaN. In a measured case the loss inside such a block was 8.99 where fresh casts give 1.70.

When it is fine
With `cache_enabled=False`, with `torch.clear_autocast_cache()` after each step, or when every weight is already stored in 16 bits.

Example
```python script bad
import torch
def train(model, optimizer, loader):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        for x, y in loader:
            optimizer.zero_grad()
            loss = model(x, y)
            loss.backward()
            optimizer.step()
```

Instead
```python script good
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x, y)
        loss.backward()
        optimizer.step()
```

How to confirm
`mpdoctor replay` compares the loss with that of fresh casts.

References
PyTorch, `torch.autocast`, parameter `cache_enabled`; pytorch/pytorch#120376; X-GenGroup/Flow-Factory PR#186.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.hits import hit
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.steps import Do, Sequence, Step, sequences
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_STEPS = (Do.OPTIMIZER_STEP, Do.SCALER_STEP)
_REMEDY = "Enter autocast anew for each forward pass, inside the loop (or pass cache_enabled=False, which casts every weight again at each use)."


def check(script: Script) -> Iterator[Hit]:
    """Find autocast contexts that outlive an optimizer step."""
    for sequence in sequences(script):
        for step in sequence:
            if step.do in _STEPS and (made := _around(script, step)) is not None and not _cleared(sequence, step):
                yield _hit(script, made, made.node, step)
        for index, entered in enumerate(sequence):
            if entered.do is Do.AUTOCAST_ENTER:
                yield from _entered(script, sequence, index, entered)


def _around(script: Script, step: Step) -> autocast.Autocast | None:
    """The outermost autocast around a step, if a loop lies between them."""
    for expression, there in step.context.withs:
        made = autocast.read(script, expression, there)
        if made is not None:
            stale = made.enabled is not False and made.caches and not made.dtypes & {"fp32", "fp64"}
            return made if stale and len(step.context.loops) > len(there.loops) else None
    return None


def _cleared(sequence: Sequence, step: Step) -> bool:
    return any(other.do is Do.CLEAR_CACHE and other.context.loops[-1:] == step.context.loops[-1:] for other in sequence)


def _entered(script: Script, sequence: Sequence, index: int, entered: Step) -> Iterator[Hit]:
    call = entered.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    stacked = call.func.attr == "enter_context"
    made = autocast.read(script, call.args[0] if stacked else call.func.value, entered.context)
    if made is None or made.enabled is False or not made.caches:
        return
    left = [step for step in sequence if step.do is Do.AUTOCAST_EXIT and step.subject == entered.subject]
    for step in sequence[index + 1 :]:
        if step.do in _STEPS and not _cleared(sequence, step):
            deeper = len(step.context.loops) > len(entered.context.loops)
            if deeper or not (stacked or left):
                yield _hit(script, made, call, step)
                return


def _hit(script: Script, made: autocast.Autocast, node: ast.expr, step: Step) -> Hit:
    return hit(
        script,
        node,
        "This autocast stays open over several optimizer steps: its cache keeps the casts of the first step's weights, "
        "so the forward pass never sees an update.",
        remedy=_REMEDY,
        because=((step.node, "the optimizer steps inside it"),),
        confidence=Confidence.HIGH if made.enabled else Confidence.MEDIUM,
    )


RULE = Rule(code="CFG007", severity=Severity.ERROR, cause="training-loop", check=check)
