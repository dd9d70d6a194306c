"""A learning rate too high for fine-tuning all weights.

What it looks for
Full fine-tuning with an Adam-like optimizer above 2e-4 (3 billion parameters or more, or size unknown): a warning; above 1e-3, for every size: an
error. Where nothing tells what is trained, a warning above 5e-3.

Why training breaks
Adam moves every weight by about the learning rate per step. Pretrained weights lie around 0.02: at 1e-3 a step changes them by a twentieth. The
loss spikes, activations grow, and fp16 overflows first.

When it is fine
Small models trained from scratch, SGD, Muon, Prodigy, Adafactor with relative steps: none of them is judged here.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: false
bf16: true
learning_rate: 2.0e-3
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: false
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT --steps 10` with EXP101 and EXP102 (half and a tenth of the learning rate).

References
187 shipped full fine-tuning configs of five frameworks: median 2e-5, 90th percentile 2e-4
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config, limits = run.config, run.thresholds
    lr = config.lr
    if lr.value is None or not run.adam or config.lr_is_peak.value is False:
        return
    if config.method.value == "full_ft" and run.language:
        small = config.n_params.value is not None and config.n_params.value < 3_000_000_000
        limit = limits.lr_full_small if small else limits.lr_full_large
        if lr.value > limit:
            yield Hit(
                message=f"{shown(lr)}: fine-tuning all weights of a {'small' if small else 'large'} model with Adam is stable up to about {limit:g}",
                setting=lr,
                severity=Severity.ERROR if lr.value > limits.lr_full_error else None,
                remedy=Remedy(text="Start with 1e-5 to 2e-5 (small models up to 1e-4), with warm-up."),
            )
    elif not config.method.known and run.dialect == "hf_trainer" and lr.value > limits.lr_unknown_method:
        yield Hit(
            message=f"{shown(lr)}: above every learning rate that shipped recipes use with Adam",
            setting=lr,
            confidence=Confidence.MEDIUM,
            remedy=Remedy(text="Start with 1e-5 to 1e-4 for pretrained models, up to 1e-3 for small ones from scratch."),
        )


RULE = Rule(code="CFG306", severity=Severity.WARNING, cause="learning-rate", needs=("lr", "optimizer_family"), check=_check)
