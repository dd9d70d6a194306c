"""The learning-rate scheduler steps before the optimizer.

What it looks for
`scheduler.step()` ahead of the first `optimizer.step()` (or `scaler.step`) of the same loop. Calls with an argument (an epoch, a metric) set
the rate absolutely and are left alone.

Why training breaks
Since PyTorch 1.1 the scheduler is stepped after the optimizer. The other way round the first value of the schedule is never used and
every later one comes a step (or, with schedules per epoch, a whole epoch) early: a warm-up starts above its first rate, a decay hits
before its time.

When it is fine
When the schedule is so long that one step does not matter, and for a scheduler that is not one of torch's or transformers' and may
be made for this order (then the finding is only a note). PyTorch's own warning about the order also appears when a GradScaler
skips the first steps; that case is normal, and this rule does not report it.

Example
```python script bad
import torch
def train(model, optimizer, loader):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    for epoch in range(90):
        scheduler.step()
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
```

Instead
```python script good
import torch
def train(model, optimizer, loader):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    for epoch in range(90):
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        scheduler.step()
```

How to confirm
`mpdoctor replay` prints the learning rate of each step.

References
PyTorch, `torch.optim`, "How to adjust learning rate"; pytorch/pytorch#55585.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.scopes import Loop
from mpdoctor.check.scripts.steps import Do, Sequence, Step, sequences
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_STEPS = (Do.OPTIMIZER_STEP, Do.SCALER_STEP)


def check(script: Script) -> Iterator[Hit]:
    """Find schedulers that step first in a loop."""
    for sequence in sequences(script):
        for index, step in enumerate(sequence):
            if step.do is not Do.SCHEDULER_STEP or step.node.args or step.node.keywords:  # type: ignore[union-attr]  # a scheduler's step is a call
                continue
            later = _later(sequence, index)
            if later is not None:
                standard = _is_standard(script, step)
                yield hit(
                    script,
                    step.node,
                    f"{shown(script, step.node)} comes before the optimizer's step in the same loop: the schedule's first rate is never used.",
                    remedy="Move the scheduler's step behind the optimizer's.",
                    because=((later.node, "the optimizer steps only here"),),
                    severity=Severity.INFO if standard is False else None,
                    confidence={True: Confidence.HIGH, None: Confidence.MEDIUM, False: Confidence.LOW}[standard],
                )


def _is_standard(script: Script, step: Step) -> bool | None:
    """Whether the scheduler is one of torch's or transformers', which are stepped after the optimizer; None when its making is not visible."""
    if not isinstance(step.node, ast.Call) or not isinstance(step.node.func, ast.Attribute):
        return None
    values = script.values(step.node.func.value, script.contexts[step.node])
    names = [script.qualname(value.func) or "" for value, _ in values if isinstance(value, ast.Call)]
    return any(name.startswith(("torch.optim.lr_scheduler.", "transformers.")) for name in names) if names else None


def _later(sequence: Sequence, index: int) -> Step | None:
    """The first optimizer step after a scheduler's in a loop that holds both, if none comes before it in that loop."""
    step = sequence[index]
    for other in sequence[index + 1 :]:
        if other.do in _STEPS and other.meets(step):
            loop = _common(step, other)
            if loop is None or loop is not step.context.loops[-1]:  # a loop further out runs whole trainings one after the other
                continue
            before = [earlier for earlier in sequence[:index] if earlier.do in _STEPS and loop in earlier.context.loops]
            return None if before else other
    return None


def _common(a: Step, b: Step) -> Loop | None:
    """The innermost loop around both."""
    shared = [x for x, y in zip(a.context.loops, b.context.loops, strict=False) if x is y]
    return shared[-1] if shared else None


RULE = Rule(code="CFG025", severity=Severity.WARNING, cause="learning-rate", check=check)
