"""E4M3 for gradients with one scale per tensor.

What it looks for
fp8 format E4M3 for everything, with a per-tensor recipe.

Why training breaks
E4M3 ends at 448. Gradients spread over many powers of two: with one scale per tensor the large ones saturate or the small ones vanish. HYBRID uses
E5M2, whose range is fp16's, for gradients.

When it is fine
With block scaling (MXFP8, blockwise), where each block has its own scale; for inference.

Example
```yaml accelerate bad
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: E4M3}
```

Instead
```yaml accelerate good
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID}
```

How to confirm
Compare the loss of a hundred steps with HYBRID.

References
accelerate's TERecipeKwargs documentation; NVIDIA/TransformerEngine#2754
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    kind, recipe = run.config.fp8_format, run.config.fp8_recipe.value
    if run.config.fp8.value and kind.value == "e4m3" and recipe not in ("mxfp8", "blockwise", "nvfp4", "custom"):
        yield Hit(
            message=f"{shown(kind)}: gradients in E4M3 saturate at 448; HYBRID keeps them in E5M2",
            setting=kind,
            remedy=remedy("Use HYBRID.", *([change(kind, "HYBRID" if (kind.raw or "").isupper() else "hybrid")] if kind.explicit else [])),
        )


RULE = Rule(code="CFG543", severity=Severity.WARNING, cause="loss-scaling", check=_check)
