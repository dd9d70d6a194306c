"""PyTorch is asked whether the GPU supports bf16, and says yes for GPUs that only emulate it.

What it looks for
`torch.cuda.is_bf16_supported()` without `including_emulation=False`, in a script that does not look at the compute capability.

Why training breaks
After PyTorch 2.2 the answer counts emulation: on a T4, V100 or RTX 20 (compute capability below 8.0) it is True, and every bf16 op is
computed in fp32 and rounded back. That is correct but slower than fp32, and some convolution and attention kernels are missing there.

When it is fine
On Ampere and later (compute capability 8.0), where both answers are the same.

Example
```python script bad
import torch
dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
```

Instead
```python script good
import torch
dtype = torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
```

How to confirm
`mpdoctor gpu` says for each device whether bf16 is native or emulated.

References
pytorch/pytorch PR#148322; pytorch/pytorch#124996; MakazhanAlpamys/Soup#387.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import rewrite
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(script: Script) -> Iterator[Hit]:
    """Find questions for bf16 that count emulation."""
    if "get_device_capability" in script.calls:
        return
    for call, _ in script.named("is_bf16_supported"):
        if not (script.qualname(call.func) or "").startswith("torch.cuda") or call.args or call.keywords:
            continue
        fix = f"{script.source.segment(call.func)}(including_emulation=False)"
        yield hit(
            script,
            call,
            f"{shown(script, call)} is True on GPUs that only emulate bf16 (T4, V100, RTX 20), where it is slower than fp32.",
            remedy=f"Ask {fix}, or torch.cuda.get_device_capability() >= (8, 0).",
            suggestion=rewrite(script.source, call, fix),
        )


RULE = Rule(code="CFG023", severity=Severity.INFO, cause="slow-precision", check=check)
