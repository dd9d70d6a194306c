"""A raised initial scale against "loss scale at minimum".

What it looks for
An initial scale of 2^24 or more, and a run whose scaler had fallen to 1 or below.

Why training breaks
A scale at its minimum means that the gradients are not finite at any scale. A higher start only adds skipped steps before the same end.

When it is fine
Never; it is a popular piece of advice that cannot work.

Example
```yaml hf_trainer bad
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
fp16: true
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto", "initial_scale_power": 32}}
# file: trainer_state.json
{"global_step": 40, "log_history": [{"step": 10, "loss": 0.0, "grad_norm": NaN}, {"step": 20, "loss": 0.0, "grad_norm": NaN}]}
```

Instead
```yaml hf_trainer good
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
fp16: true
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"}}
# file: trainer_state.json
{"global_step": 40, "log_history": [{"step": 10, "loss": 0.0, "grad_norm": NaN}, {"step": 20, "loss": 0.0, "grad_norm": NaN}]}
```

How to confirm
`mpdoctor replay CHECKPOINT` names the op that first was not finite.

References
microsoft/DeepSpeedExamples#418, #531; hiyouga/LlamaFactory#315
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.history import broken_steps
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale, at_end = run.config.init_scale, run.config.setting("checkpoint.scale")
    broken = (at_end.value is not None and at_end.value <= 1) or broken_steps(run) is not None
    if run.computes_in == "fp16" and broken and scale.explicit and scale.value is not None and scale.value >= run.thresholds.init_scale_high:
        yield Hit(
            message=f"{shown(scale)}: a higher first scale cannot help where gradients are not finite at any scale",
            setting=scale,
            remedy=Remedy(text="Find the source of the NaN (mpdoctor replay), lower the learning rate, clip, or train in bf16."),
        )


RULE = Rule(code="CFG214", severity=Severity.INFO, cause="fp16-range", needs=("init_scale",), check=_check)
