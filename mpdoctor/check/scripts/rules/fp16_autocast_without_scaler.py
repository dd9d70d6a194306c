"""The forward pass runs in fp16 and nothing scales the loss.

What it looks for
A training loop (`loss.backward()` without a framework) whose forward pass runs under `autocast` in fp16, in a script that never mentions
a gradient scaler. `autocast` on CUDA without `dtype=` means fp16. An mpdoctor recipe counts as a training loop: `CONFIG` says whether a
scaler is used, and the default is none.

Why training breaks
The backward pass runs in the format of the forward pass. Activation gradients below 6e-8 become exactly 0 in fp16 and those below 6.1e-5
lose bits; with a mean over a large batch they are commonly there. The weights then stop moving, mostly in the early layers, while
the loss stays finite and flat, so that the run looks converged.

When it is fine
When the gradients are large enough by themselves. That holds for some small models, but not by design; and never notice it breaking.
In bf16, which has fp32's range, no scaling is needed.

Example
```python script bad
import torch
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
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
`mpdoctor replay` counts the gradients that flush to zero, prints the window of scales that keep them, and repeats the step with scaling on.

References
PyTorch, Automatic Mixed Precision package, "Gradient scaling"; karpathy/nanoGPT#8; engichang1467/Open-Rig3R#35.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.hits import hit
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.check.scripts.steps import Do, sequences
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_SCALING = re.compile(r"grad_?scaler|loss_?scal|(?:^|_)scaler$|amp_?scaler|native_?scaler|scale_loss|scaled_loss", re.IGNORECASE)
_NOT_TRAINING = re.compile(r"eval|valid|test|infer|generat|sampl|predict|encod|decod|embed|benchmark", re.IGNORECASE)
_REMEDY = (
    "Scale the loss with torch.amp.GradScaler (scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()), "
    "or use dtype=torch.bfloat16 where the GPU has it (compute capability 8.0 or later)."
)


def check(script: Script) -> Iterator[Hit]:
    """Find fp16 forward passes of training loops without a scaler."""
    recipe = _recipe(script)
    autocasts = autocast.every_autocast(script)
    if not autocasts or (recipe is None and (not _plain_loop(script) or any(_SCALING.search(name) for name in script.identifiers))):
        return
    scaler = recipe.get("scaler") if recipe is not None else None
    if isinstance(scaler, ast.Constant) and scaler.value:
        return
    for made, context in autocasts:
        if "fp16" not in made.dtypes or autocast.gradless(script, context) or _only_evaluates(script, made, context):
            continue
        certain = made.enabled is True and made.dtypes == {"fp16"} and (made.explicit or made.device == "cuda")
        asked = recipe is None or scaler is not None
        severity = Severity.ERROR if certain and asked else Severity.WARNING if made.dtypes == {"fp16"} else Severity.INFO
        yield hit(
            script,
            made.node,
            ("The forward pass runs in fp16" if made.explicit else "autocast without dtype= runs the forward pass in fp16")
            + (" when bf16 is not chosen" if made.dtypes != {"fp16"} else "")
            + " and the loss is not scaled: gradients below 6e-8 become 0, and weights stop moving without a NaN.",
            remedy=_REMEDY if recipe is None else "Set scaler=True in CONFIG, or use dtype=torch.bfloat16.",
            severity=severity,
            confidence={Severity.ERROR: Confidence.HIGH, Severity.WARNING: Confidence.MEDIUM}.get(severity, Confidence.LOW),
        )


def _plain_loop(script: Script) -> bool:
    """Whether the script itself calls backward and steps an optimizer, and no framework does it."""
    steps = {step.do for sequence in sequences(script) for step in sequence}
    return Do.BACKWARD in steps and Do.OPTIMIZER_STEP in steps and not steps & {Do.FRAMEWORK_BACKWARD, Do.SCALED_BACKWARD}


def _recipe(script: Script) -> dict[str, ast.expr] | None:
    """CONFIG of an mpdoctor recipe (a module with `build`, `batches` and `loss`); empty without CONFIG, None for any other script."""
    if not {"build", "batches", "loss"} <= script.module.functions.keys():
        return None
    for binding in script.module.bindings.get("CONFIG", []):
        match binding.value:
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                return {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
            case ast.Dict(keys=keys, values=values):
                return {str(key.value): value for key, value in zip(keys, values, strict=True) if isinstance(key, ast.Constant)}
    return {}


def _only_evaluates(script: Script, made: autocast.Autocast, context: Context) -> bool:
    """Whether the autocast serves evaluation: a function named so, or a block that is entered only without gradients."""
    if _NOT_TRAINING.search(context.scope.name.rpartition(".")[2]):
        return True
    statement = script.statement(made.node)
    return isinstance(statement, ast.With) and any(autocast.gradless(script, script.contexts[inner]) for inner in statement.body)


RULE = Rule(code="CFG004", severity=Severity.ERROR, cause="loss-scaling", check=check)
