"""Binary cross-entropy on probabilities is computed under autocast.

What it looks for
`F.binary_cross_entropy` or a `nn.BCELoss` that is called inside an autocast block for the GPU, or in the `forward` of a module in a
script whose forward pass runs under autocast.

Why training breaks
On CUDA autocast refuses it: "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast". A sigmoid in 16 bits is exactly
1 for logits above 8.3 in fp16 and 6.2 in bf16, and log(1 - 1) is -inf. `binary_cross_entropy_with_logits` takes the logits and is safe.

When it is fine
On the CPU, whose autocast runs it in fp32; inside `torch.autocast(..., enabled=False)` on `.float()` values.

Example
```python script bad
import torch
import torch.nn.functional as F
def loss(model, x, target):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return F.binary_cross_entropy(model(x), target)
```

Instead
```python script good
import torch
import torch.nn.functional as F
def loss(model, x, target):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return F.binary_cross_entropy_with_logits(model(x), target)
```

How to confirm
It raises at the first step on a GPU.

References
PyTorch, Automatic Mixed Precision package, "Prefer binary_cross_entropy_with_logits over binary_cross_entropy".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast, precision
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import Edits, rewrite, together
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find binary cross-entropy on probabilities under autocast."""
    for call, context in _calls(script):
        opened = list(autocast.open_autocasts(script, context))
        if opened:
            made = opened[-1]
            if made.enabled is False or made.device == "cpu":
                continue
            yield _hit(script, call, made.node, Severity.ERROR, Confidence.HIGH if made.enabled and made.device == "cuda" else Confidence.MEDIUM)
        else:
            seen = precision.at(script, context, "fp16") or precision.at(script, context, "bf16")
            around = next((made for made, _ in autocast.every_autocast(script) if seen is not None and made.node is seen.node), None)
            if around is not None and around.device != "cpu":
                inside_module = script.enclosing_module(context.scope) is not None
                yield _hit(script, call, around.node, Severity.WARNING if inside_module else Severity.ERROR, Confidence.MEDIUM)


def _calls(script: Script) -> Iterator[tuple[ast.Call, Context]]:
    for call, context in script.named("binary_cross_entropy"):
        if (script.qualname(call.func) or "").startswith("torch."):
            yield call, context
    made = [call for call, _ in script.named("BCELoss") if (script.qualname(call.func) or "").startswith("torch.")]
    names = {script.key(target) for call in made for target in _targets(script, call)}
    for calls in script.calls.values():
        for call in calls:
            if call.func in made or (isinstance(call.func, (ast.Name, ast.Attribute)) and script.key(call.func) in names and _is_bce(script, call)):
                yield call, script.contexts[call]


def _targets(script: Script, call: ast.Call) -> list[ast.expr]:
    statement = script.statement(call)
    return statement.targets if isinstance(statement, ast.Assign) and statement.value is call else []


def _is_bce(script: Script, call: ast.Call) -> bool:
    values = script.values(call.func, script.contexts[call])
    return all(isinstance(value, ast.Call) and (script.qualname(value.func) or "").endswith(".BCELoss") for value, _ in values)


def _hit(script: Script, call: ast.Call, made: ast.expr, severity: Severity, confidence: Confidence) -> Hit:
    return hit(
        script,
        call,
        f"{shown(script, call)} runs under autocast: on CUDA PyTorch raises, because a 16-bit sigmoid rounds to 0 or 1 and log(0) is -inf.",
        remedy="Give the logits to F.binary_cross_entropy_with_logits (nn.BCEWithLogitsLoss) and leave the sigmoid out.",
        edits=_on_logits(script, call),
        because=((made, "autocast begins here"),),
        severity=severity,
        confidence=confidence,
    )


def _on_logits(script: Script, call: ast.Call) -> Edits:
    """For `F.binary_cross_entropy(torch.sigmoid(x), y)` it is `F.binary_cross_entropy_with_logits(x, y)`: the same number, computed safely."""
    given = call.args[0] if call.args else None
    sigmoid = script.op(given) if given is not None else None
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "binary_cross_entropy" or given is None:
        return ()
    if sigmoid is None or sigmoid.name != "sigmoid" or not isinstance(given, ast.Call) or given.keywords:
        return ()
    last = call.func
    name = rewrite(script.source, last, f"{script.source.segment(last.value)}.binary_cross_entropy_with_logits")
    return together(name, rewrite(script.source, given, script.source.segment(sigmoid.operand)))


RULE = Rule(code="CFG016", severity=Severity.ERROR, cause="model-numerics", check=check)
