"""Adam updates weights that are stored in 16 bits, without an fp32 copy.

What it looks for
`torch.optim.Adam` (AdamW, NAdam, RAdam, Adamax) over the parameters of a model that the script casts with `.half()`, `.bfloat16()`,
`.to(torch.float16)` or loads in 16 bits. The model is followed through names, attributes and the script's own functions.

Why training breaks
The optimizer keeps its moments in the format of the weights. In fp16 the second moment of a gradient below 2.4e-4 is under 6e-8
and becomes 0, and Adam's default eps of 1e-8 is 0 as well: the update is m/0 = inf, or 0/0 = NaN for a row without gradient, after
the first step. In bf16 nothing overflows, but an update below about 1/256 of a weight is rounded away: with weights of standard deviation
0.02 one Adam step of lr 2e-5 leaves 70 % of them unchanged, 5e-6 leaves 92 %, 1e-4 leaves 12 %.

When it is fine
With an optimizer that keeps fp32 masters, Kahan or stochastic rounding, with frameworks that keep masters (DeepSpeed, FSDP with fp32
parameters), and with adapters in fp32 on a 16-bit model; those are not reported. bf16 with lr of 1e-4 and more is only noted.

Example
```python script bad
import torch
def build():
    model = torch.nn.Linear(8, 8).half()
    return model, torch.optim.Adam(model.parameters(), lr=1e-4)
```

Instead
```python script good
import torch
def build():
    model = torch.nn.Linear(8, 8)
    return model, torch.optim.Adam(model.parameters(), lr=1e-4)
def loss(model, x, y):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return torch.nn.functional.mse_loss(model(x), y)
```

How to confirm
`mpdoctor replay` counts the weights that a step does not change, and repeats the step with fp32 master weights.

References
openai/CLIP#40; CambioML/pykoi PR#69; tianweiy/CausVid#19; pytorch/ao PR#1124.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.scripts.hits import hit
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.weights import LowWeights, adam_over_low_weights
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.numerics import FP16
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find Adam over 16-bit weights."""
    for found in adam_over_low_weights(script):
        if found.dtype == "fp16" and found.eps is not None and found.eps <= FP16.smallest_subnormal / 2:
            continue  # `eps-below-fp16-tiny` says it
        severity = _severity(found)
        yield hit(
            script,
            found.optimizer,
            _message(found),
            remedy="Keep the weights in fp32 and let autocast compute in 16 bits"
            + (" (with a GradScaler in fp16)" if found.dtype == "fp16" else ", or use an optimizer with fp32 masters or stochastic rounding")
            + ".",
            because=((found.cast.node, f"the weights of {found.cast.module} become {found.dtype}"),),
            severity=severity if found.certain else severity.lowered(),
            confidence=Confidence.HIGH if found.certain else Confidence.LOW,
        )


def _severity(found: LowWeights) -> Severity:
    """From the share of updates that are lost at this learning rate, and from eps where it decides."""
    if found.dtype == "bf16":
        if found.lr is None or found.lr >= 1e-4:
            return Severity.INFO
        return Severity.ERROR if found.lr < 5e-6 else Severity.WARNING
    if not found.eps_given:
        return Severity.ERROR
    if found.eps is None or found.eps < 1e-5 or (found.lr is not None and found.lr <= 1e-5):
        return Severity.WARNING
    return Severity.INFO


def _message(found: LowWeights) -> str:
    if found.dtype == "bf16":
        rate = f" (lr {found.lr:g})" if found.lr is not None else ""
        return f"Adam{rate} updates bf16 weights without an fp32 copy: updates below about 1/256 of a weight are rounded away."
    if not found.eps_given:
        return "Adam updates fp16 weights with its default eps of 1e-8, which is 0 in fp16: zero gradients give 0/0 = NaN, small ones inf."
    return "Adam updates fp16 weights without an fp32 copy: second moments below 6e-8 become 0, and updates below 1/2048 of a weight are lost."


RULE = Rule(code="CFG009", severity=Severity.ERROR, cause="low-precision-state", check=check)
