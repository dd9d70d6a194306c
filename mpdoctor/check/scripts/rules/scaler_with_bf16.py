"""A gradient scaler is on although the run is in bf16.

What it looks for
A `GradScaler` that is used and not disabled, in a script whose every autocast names bf16 (or whose weights are cast to bf16).

Why training breaks
bf16 has the range of fp32: there is nothing to scale. The scaler still multiplies and divides, doubles its scale every 2000 steps until
something overflows, and skips steps on any inf or NaN, which hides a real fault behind "normal" skipped steps. Older versions of
PyTorch raise on bf16 gradients.

When it is fine
When the same script also trains in fp16 and the scaler is made with `enabled=` accordingly. Otherwise it does little harm but no good.

Example
```python script bad
import torch
scaler = torch.amp.GradScaler("cuda")
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
```

Instead
```python script good
import torch
def train(model, optimizer, loader, dtype: torch.dtype):
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
```

How to confirm
`mpdoctor replay` runs the step without the scaler: the update is the same.

References
PyTorch, Automatic Mixed Precision package; decoderesearch/SAELens PR#723.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast, precision
from mpdoctor.check.scripts.hits import hit
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import Edits, rewrite
from mpdoctor.check.scripts.steps import Do, sequences
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find scalers that are on in a script that trains in bf16 alone."""
    used = any(step.do is Do.SCALED_BACKWARD for sequence in sequences(script) for step in sequence)
    autocasts = [made for made, _ in autocast.every_autocast(script)]
    if not used or (autocasts and not all(made.only("bf16") for made in autocasts)) or precision.visible(script, "fp16"):
        return
    seen = precision.visible(script, "bf16")
    if seen is None:
        return
    for call, _ in script.named("GradScaler", "ShardedGradScaler"):
        enabled = next((keyword.value for keyword in call.keywords if keyword.arg == "enabled"), None)
        if enabled is None or (isinstance(enabled, ast.Constant) and enabled.value is True):
            yield hit(
                script,
                call,
                "The loss is scaled although the run is in bf16, which has fp32's range: scaling does nothing but skip steps, and hides real faults.",
                remedy="Remove the scaler, or make it with enabled=False in bf16.",
                edits=_switched_off(script, call, enabled),
                because=((seen.node, seen.text),),
            )


def _switched_off(script: Script, call: ast.Call, enabled: ast.expr | None) -> Edits:
    """`enabled=False`: a scaler that is off hands losses and steps through."""
    if enabled is not None:
        return rewrite(script.source, enabled, "False")
    if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(argument, ast.Starred) for argument in call.args):
        return ()
    text = script.source.segment(call)
    inside = text.removesuffix(")").rstrip()
    return rewrite(script.source, call, f"{inside}{'' if inside.endswith(('(', ',')) else ','}{'' if inside.endswith('(') else ' '}enabled=False)")


RULE = Rule(code="CFG005", severity=Severity.INFO, cause="loss-scaling", check=check)
