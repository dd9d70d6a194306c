"""Evaluation in another 16-bit format than training.

What it looks for
`fp16_full_eval` in a bf16 run, or the reverse.

Why training breaks
Metrics are not those of the trained model, and a bf16 model overflows in fp16: evaluation losses of NaN.

When it is fine
Never on purpose.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
fp16_full_eval: true
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
bf16_full_eval: true
```

How to confirm
Evaluate once with both switches off.

References
transformers TrainingArguments
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    evaluation, compute = run.config.eval_dtype, run.config.compute_dtype
    if evaluation.value in SIXTEEN_BIT and compute.value in SIXTEEN_BIT and evaluation.value != compute.value:
        yield Hit(
            message=f"{shown(evaluation)} in a {compute.value} run: the model is evaluated in {evaluation.value}",
            setting=evaluation,
            related=(compute.at,) if compute.at else (),
            remedy=Remedy(text=f"Use `{compute.value}_full_eval`."),
        )


RULE = Rule(code="CFG704", severity=Severity.WARNING, cause="fp16-range", needs=("compute_dtype",), check=_check)
