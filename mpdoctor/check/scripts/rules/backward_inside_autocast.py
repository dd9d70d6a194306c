"""The backward pass runs inside the autocast block.

What it looks for
`loss.backward()` (scaled or not) inside a `with autocast(...)` block or a function that is decorated with it.

Why training breaks
It mostly does not break, but PyTorch advises against it: backward ops choose their formats by the forward ops, and an active
autocast casts once more inside custom autograd functions, recomputed checkpoints, double backward and gradient penalties, so that these
run in another format than they were written for. Memory for the casts of the weights is also held longer.

When it is fine
When the model has no custom autograd function, no checkpointing and no gradient penalty.

Example
```python script bad
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
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
`mpdoctor replay` lists the dtype of every backward op.

References
PyTorch, Automatic Mixed Precision package: "Backward passes under autocast are not recommended".
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.steps import Do, sequences
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find backward passes under an active autocast."""
    for sequence in sequences(script):
        for step in sequence:
            made = autocast.innermost(script, step.context) if step.do in (Do.BACKWARD, Do.SCALED_BACKWARD) else None
            if made is None:
                continue
            outer = next(there for expression, there in step.context.withs if autocast.read(script, expression, there) is made)
            if len(step.context.loops) > len(outer.loops):  # around the loop: a worse fault with its own rule
                continue
            yield hit(
                script,
                step.node,
                f"{shown(script, step.node)} runs inside autocast, which casts again in checkpoints, custom functions and gradient penalties.",
                remedy="End the autocast block after the loss; backward needs none.",
                because=((made.node, "autocast begins here"),),
            )


RULE = Rule(code="CFG006", severity=Severity.INFO, cause="training-loop", check=check)
