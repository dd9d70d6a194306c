"""When a step is skipped because of a NaN, the NaN gradients are kept.

What it looks for
`optimizer.step()` behind a test for finite values (`isfinite`, `isnan`, `norm == norm`, a gradient norm below a threshold) where every
`zero_grad` stands behind the same test and `backward` does not.

Why training breaks
`backward` adds to `.grad`. After one bad batch `.grad` holds NaN; the test skips the step and `zero_grad` with it; the next backward adds
a good gradient to NaN, which is NaN. The test then fails for ever: the run goes on, and no weight moves again.

When it is fine
When something else clears the gradients before the next backward pass, in a place that is not visible here.

Example
```python script bad
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
            optimizer.zero_grad()
```

Instead
```python script good
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
        optimizer.zero_grad()
```

How to confirm
`mpdoctor replay` shows that the gradient norm is NaN in every step after the first bad one, and that it is finite with the gradients cleared.

References
espnet/espnet PR#3283; NVIDIA-NeMo/Speech#11272.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mpdoctor.check.scripts.guards import facts_of
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script, same, within
from mpdoctor.check.scripts.scopes import Context, Guard
from mpdoctor.check.scripts.steps import Do, Step, sequences
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule

_TESTS = ("isnan", "isfinite", "isinf", "isneginf", "isposinf")
_NAMES = re.compile(r"overflow|found_inf|has_nan|has_inf|is_nan|is_finite|nonfinite|non_finite|not_finite|skip_step|step_was_skipped|nan_detected")
_BACKWARD = (Do.BACKWARD, Do.SCALED_BACKWARD, Do.FRAMEWORK_BACKWARD)
_STEPS = (Do.OPTIMIZER_STEP, Do.SCALER_STEP)


def check(script: Script) -> Iterator[Hit]:
    """Find steps whose gradients stay when the step is skipped."""
    for sequence in sequences(script):
        clears = [step for step in sequence if step.do is Do.ZERO_GRAD]
        for step in sequence:
            guard = next((g for g in step.context.guards if _tests_values(script, g, step.context)), None) if step.do in _STEPS else None
            mine = [clear for clear in clears if _concerns(clear, step)]
            if guard is None or not mine or any(_behind(other, guard) for other in sequence if other.do in _BACKWARD):
                continue
            if not any(other.do in _BACKWARD for other in sequence) or not all(_behind(clear, guard) for clear in mine):
                continue
            test = guard.test
            assert test is not None
            clear = mine[0]
            yield hit(
                script,
                clear.node,
                f"{shown(script, clear.node)} is skipped together with the step when `{shown(script, test)}` says so: "
                "NaN stays in .grad, is added to every later gradient, and no step happens again.",
                remedy="Clear the gradients whether or not the step is taken: move zero_grad out of the test, or to the start of the cycle.",
                because=((test, "the step depends on this test"),),
            )


def _concerns(clear: Step, step: Step) -> bool:
    """Whether a zero_grad may clear the gradients of a step's optimizer; a model's zero_grad clears all."""
    mine = step.other if step.do is Do.SCALER_STEP else step.subject
    return clear.subject == mine or "opt" not in clear.subject.lower()


def _tests_values(script: Script, guard: Guard, context: Context) -> bool:
    """Whether a guard's test is about values being finite (or a gradient norm being small)."""
    if guard.test is None:
        return False
    tests = [guard.test, *(script.resolve(name, context)[0] for name in within(guard.test, ast.Name) if isinstance(name, ast.Name))]
    return any(_is_value_test(script, test) for test in tests)


def _is_value_test(script: Script, test: ast.expr) -> bool:
    for part in within(test, (ast.Call, ast.Compare, ast.Name, ast.Attribute)):
        match part:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _TESTS:
                return True
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]) if same(left, right):
                return True
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
                if any("norm" in script.key(side).lower() for side in (left, right) if isinstance(side, (ast.Name, ast.Attribute))):
                    return not (isinstance(right, ast.Constant) and right.value == 0)
            case ast.Name(id=name) | ast.Attribute(attr=name) if _NAMES.search(name.lower()):
                return True
    return False


def _behind(step: Step, guard: Guard) -> bool:
    """Whether a step runs only when the guard lets the optimizer step: the same arm, or the same test written again."""
    facts = set(facts_of(guard))
    return any((g.statement is guard.statement and g.arm == guard.arm) or (facts and facts <= set(facts_of(g))) for g in step.context.guards)


RULE = Rule(code="CFG008", severity=Severity.ERROR, cause="training-loop", check=check)
