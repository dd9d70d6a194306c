"""Autograd's anomaly mode is on for the whole run.

What it looks for
`torch.autograd.set_detect_anomaly(True)`, `with torch.autograd.detect_anomaly():` and a trainer's `detect_anomaly=True`, written as a constant and
not behind a test.

Why training breaks
It checks every gradient for NaN and records a traceback for every op: on a CPU a step of a small GPT or of a convolutional net took
1.2 to 1.3 times as long, and each tiny module 140 to 170 microseconds more. With a GradScaler it does harm: the scaler finds its scale by
letting some first steps overflow, and anomaly mode turns such a normal overflow (inf - inf in backward) into an exception.

When it is fine
While a NaN is searched for.

Example
```python script bad
import torch
torch.autograd.set_detect_anomaly(True)
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
```

Instead
```python script good
import torch
def train(model, optimizer, loader, debug=False):
    torch.autograd.set_detect_anomaly(debug)
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
```

How to confirm
Time a few steps without it. `mpdoctor replay` finds the first bad op without anomaly mode.

References
PyTorch, "Anomaly detection".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import Edits, rewrite
from mpdoctor.check.scripts.steps import Do, sequences
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find anomaly mode switched on by a constant."""
    scaled = any(step.do is Do.SCALED_BACKWARD for sequence in sequences(script) for step in sequence)
    for call, context in script.named("set_detect_anomaly", "detect_anomaly"):
        name = script.qualname(call.func) or ""
        if not name.startswith("torch.autograd") or context.guards:
            continue
        mode = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "mode"), None)
        if name.endswith(".detect_anomaly") or (isinstance(mode, ast.Constant) and mode.value is True):
            yield _hit(script, call, scaled, _switched_off(script, call, mode))
    for call, context in script.named("Trainer"):
        keyword = next((k.value for k in call.keywords if k.arg == "detect_anomaly"), None)
        if isinstance(keyword, ast.Constant) and keyword.value is True and not context.guards:
            yield _hit(script, call, scaled, rewrite(script.source, keyword, "False"))


def _switched_off(script: Script, call: ast.Call, mode: ast.expr | None) -> Edits:
    """`set_detect_anomaly(False)`, which is a context manager too, like `detect_anomaly()`, which is always on."""
    if mode is not None and (script.qualname(call.func) or "").endswith("set_detect_anomaly"):
        return rewrite(script.source, mode, "False")
    if isinstance(call.func, ast.Attribute) and call.func.attr == "detect_anomaly":
        return rewrite(script.source, call, f"{script.source.segment(call.func.value)}.set_detect_anomaly(False)")
    return ()


def _hit(script: Script, call: ast.Call, scaled: bool, edits: Edits) -> Hit:
    harm = "with a GradScaler it also raises on the overflows by which the scaler finds its scale." if scaled else "it is meant for searching a NaN."
    return hit(
        script,
        call,
        f"{shown(script, call)} is on for the whole run: every backward op is checked and traced, and {harm}",
        remedy="Switch it off after debugging, or on by an option.",
        edits=edits,
        severity=Severity.WARNING if scaled else None,
    )


RULE = Rule(code="CFG021", severity=Severity.INFO, cause="training-loop", check=check)
