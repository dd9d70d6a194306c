"""Rowwise fp8 scaling where rows are zero.

What it looks for
Rowwise scaling together with LoRA, whose B matrix starts as zeros.

Why training breaks
A row of zeros has a maximum of zero; without a lower bound its scale is a division by zero, and NaN.

When it is fine
With a lower bound on the maximum, or layers filtered out.

Example
```yaml torchtune bad
model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8, lora_alpha: 16}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer}
optimizer: {_component_: torch.optim.AdamW, lr: 3.0e-4}
enable_fp8_training: true
fp8_recipe_name: rowwise
compile: true
dtype: bf16
```

Instead
```yaml torchtune good
model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8, lora_alpha: 16}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer}
optimizer: {_component_: torch.optim.AdamW, lr: 3.0e-4}
enable_fp8_training: true
fp8_recipe_name: tensorwise
compile: true
dtype: bf16
```

How to confirm
NaN in the first step, in the layers that hold adapters.

References
pytorch/ao#3356 (the cause is inferred; the repair there is a lower bound)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    recipe = run.config.fp8_recipe
    if run.config.fp8.value and str(recipe.value).startswith("rowwise") and run.trains_adapters:
        yield Hit(
            message=f"{shown(recipe)} with LoRA: rows of zeros get an infinite scale",
            setting=recipe,
            confidence=Confidence.MEDIUM,
            remedy=Remedy(text="Use tensorwise scaling, or a lower bound on the maximum."),
        )


RULE = Rule(code="CFG551", severity=Severity.WARNING, cause="model-numerics", needs=("method",), check=_check)
