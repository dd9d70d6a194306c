"""Softmax or logsumexp is written out without subtracting the maximum.

What it looks for
`exp(x) / exp(x).sum(...)` and `log(exp(x).sum(...))`, also through names. Exponents that are bounded (minus their maximum, clamped, a negated
square, a product of normalised vectors) are left alone.

Why training breaks
`exp` overflows above 88.7 in fp32 and bf16 and above 11.09 in fp16; inf/inf is NaN. When all exponents are very negative the sum is 0
and the quotient 0/0. `torch.softmax` and `torch.logsumexp` subtract the maximum first and have neither problem.

When it is fine
When the exponents are bounded by construction, e.g. by a clamp further up that is not visible here.

Example
```python script bad
import torch
class Gate(torch.nn.Module):
    def forward(self, scores):
        weights = torch.exp(scores)
        return weights / weights.sum(-1, keepdim=True)
```

Instead
```python script good
import torch
class Gate(torch.nn.Module):
    def forward(self, scores):
        return torch.softmax(scores, dim=-1)
```

How to confirm
`mpdoctor replay` names `exp` as the origin, with the exponent that overflowed.

References
PyTorch, `torch.softmax`, `torch.logsumexp`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.scripts.exponentials import written_out
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find softmax and logsumexp by hand."""
    for found in written_out(script):
        name = found.better.rpartition(".")[2]
        yield hit(
            script,
            found.node,
            f"{shown(script, found.node)} is {name} without subtracting the maximum: exp overflows above 88.7 (11.09 in fp16)"
            + (", and inf/inf is NaN." if name == "softmax" else "."),
            remedy=f"Use {found.better}({shown(script, found.argument)}, dim=...).",
        )


RULE = Rule(code="CFG013", severity=Severity.WARNING, cause="model-numerics", check=check)
