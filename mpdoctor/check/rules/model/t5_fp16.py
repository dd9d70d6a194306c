"""T5 in fp16.

What it looks for
T5, mT5, UMT5, FLAN-T5 and their kin in fp16: an error, a warning for the small and base sizes.

Why training breaks
T5 was trained in bf16. The feed-forward output projection reaches 66246 and more in the larger sizes, above fp16's 65504: infinity in the
residual, NaN in the next normalisation. Transformers keeps that projection in fp32 only when the model is loaded in fp16, not under autocast.

When it is fine
Small sizes sometimes; adapters do not help, since the base overflows.

Example
```yaml hf_trainer bad
model_name_or_path: google/flan-t5-xl
use_peft: false
fp16: true
learning_rate: 1.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: google/flan-t5-xl
use_peft: false
bf16: true
learning_rate: 1.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` names `wo` as the origin, with its exact value.

References
huggingface/transformers#5651, #9295, #10956, #11461, #23918
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.model_family.value not in ("t5", "mt5", "umt5", "longt5", "pix2struct", "udop", "pop2piano") or run.computes_in != "fp16":
        return
    small = config.n_params.value is not None and config.n_params.value <= 300_000_000
    yield Hit(
        message=f"{config.model_family.value} in fp16: its feed-forward output passes 65504 and becomes infinite",
        setting=config.compute_dtype,
        severity=Severity.WARNING if small else None,
        remedy=remedy("Train in bf16, or in fp32 on GPUs without it.", *to_bf16(run)),
    )


RULE = Rule(code="CFG501", severity=Severity.ERROR, cause="fp16-range", needs=("model_family", "compute_dtype"), check=_check)
