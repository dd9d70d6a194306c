"""A learning rate too high for preference tuning.

What it looks for
DPO, KTO, GRPO or PPO above 5e-5 for all weights or 5e-4 for adapters (warning), above 1e-3 (error).

Why training breaks
These losses hold the ratio of the policy to a reference. Large steps drive the log-probabilities apart until their exponential overflows and the
policy collapses.

When it is fine
TRL's defaults of 1e-6 are normal here, not too small.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
beta: 0.1
max_prompt_length: 512
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
beta: 0.1
max_prompt_length: 512
bf16: true
learning_rate: 1.0e-6
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT --steps 10` with EXP102 (a tenth of the learning rate).

References
39 shipped preference configs: full median 3e-6, LoRA median 1e-5, highest 5e-4; TRL's DPOConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config, limits = run.config, run.thresholds
    lr = config.lr
    limit = {"prefer_full": limits.lr_preference_full, "prefer_lora": limits.lr_preference_lora}.get(str(config.method.value))
    if limit is None or lr.value is None or not run.adam or config.lr_is_peak.value is False:
        return
    if lr.value > limit:
        yield Hit(
            message=f"{shown(lr)}: too high for preference tuning, which is stable up to about {limit:g} here",
            setting=lr,
            severity=Severity.ERROR if lr.value > limits.lr_preference_error else None,
            remedy=Remedy(text="Use 5e-7 to 1e-6 for all weights, 5e-6 to 5e-5 for adapters."),
        )


RULE = Rule(code="CFG309", severity=Severity.WARNING, cause="learning-rate", needs=("lr", "method", "optimizer_family"), check=_check)
