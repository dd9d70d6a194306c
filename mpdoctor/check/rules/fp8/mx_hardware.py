"""MXFP8 or NVFP4 before Blackwell.

What it looks for
A block-scaled recipe on an NVIDIA GPU below compute capability 10.0.

Why training breaks
The scaled matrix products exist from Blackwell on.

When it is fine
Emulation, for checks of accuracy.

Example
```toml torchtitan bad gpu=h100
[training]
steps = 1000
[parallelism]
data_parallel_shard_degree = -1
[model]
name = "llama3"
flavor = "8B"
converters = ["mx"]
[optimizer]
lr = 3e-4
```

Instead
```toml torchtitan good gpu=b200
[training]
steps = 1000
[parallelism]
data_parallel_shard_degree = -1
[model]
name = "llama3"
flavor = "8B"
converters = ["mx"]
[optimizer]
lr = 3e-4
```

How to confirm
`mpdoctor gpu`

References
Megatron-LM's help text for `--fp8-recipe mxfp8`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    recipe, gpu = run.config.fp8_recipe, run.below(10)
    if recipe.value in ("mxfp8", "nvfp4", "mxfp4") and gpu is not None:
        yield Hit(
            message=f"{shown(recipe)}: block-scaled products need Blackwell; {capability(gpu)} has none",
            setting=recipe,
            remedy=Remedy(text="Use delayed or tensorwise scaling."),
        )


RULE = Rule(code="CFG542", severity=Severity.ERROR, cause="kernel", needs=("gpus",), check=_check)
