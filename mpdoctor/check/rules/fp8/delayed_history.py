"""fp8 scales taken from the last step alone.

What it looks for
Delayed scaling with a history below 16 and the most recent maximum.

Why training breaks
The scale of a step comes from the step before: one spike sets it, the next tensor underflows; growth from step to step saturates.

When it is fine
Megatron's defaults are exactly this and train; information there.

Example
```yaml accelerate bad
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID, amax_history_len: 1, amax_compute_algo: most_recent}
```

Instead
```yaml accelerate good
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID, amax_history_len: 1024, amax_compute_algo: max}
```

How to confirm
Compare the loss with a history of 1024 and `max`.

References
Defaults of Megatron-LM (1, most_recent), NeMo (1024, max), Composer (16, max)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    history, amax = run.config.fp8_history, run.config.fp8_amax
    if run.config.fp8_recipe.value == "delayed" and history.value is not None and history.value < 16 and amax.value == "most_recent":
        yield Hit(
            message=f"{shown(history)} with the most recent maximum: one spike sets the fp8 scale",
            setting=history,
            remedy=Remedy(text="Use a history of 16 to 1024 with `max`."),
        )


RULE = Rule(code="CFG544", severity=Severity.WARNING, cause="loss-scaling", check=_check)
