"""torch is set to sum fp16 products in fp16.

What it looks for
    `torch.backends.cuda.matmul.allow_fp16_accumulation` is on (`--torch` reads it). The default is off.

Why training breaks
    It doubles the speed of GeForce cards, and a sum of more than 65504 becomes inf: the products of one long row are enough.

When it is fine
    Inference with values that are known to be small.

How to confirm
    Switch it off and replay the failing step.

References
    torch.backends.cuda documentation; `mpdoctor explain fp16`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """Read the flag."""
    if (machine.torch_says or {}).get("flags", {}).get("matmul.allow_fp16_accumulation"):
        yield Hit(
            message="fp16 matrix products are summed in fp16: sums above 65504 become inf",
            remedy=Remedy(text="torch.backends.cuda.matmul.allow_fp16_accumulation = False"),
        )


RULE: Rule[Machine] = Rule(code="GPU204", severity=Severity.WARNING, check=check, cause="fp16-range", needs=("torch_says",))
