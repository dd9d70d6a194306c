"""Resuming from weights that were saved in 16 bits.

What it looks for
DeepSpeed's gathered 16-bit weights together with a checkpoint to resume from.

Why training breaks
The fp32 copies are not in that file: the resumed run starts from rounded weights.

When it is fine
When the sharded checkpoint beside it is the one that is resumed.

Example
```yaml hf_trainer bad
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
bf16: true
resume_from_checkpoint: out/checkpoint-500
save_only_model: true
# file: ds_config.json
{"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true},
 "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}
```

Instead
```yaml hf_trainer good
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
bf16: true
resume_from_checkpoint: out/checkpoint-500
# file: ds_config.json
{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}
```

How to confirm
The dtype in the weights' file.

References
DeepSpeed `stage3_gather_16bit_weights_on_model_save`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    save, resume = run.config.save_dtype, run.config.resume
    if save.value in SIXTEEN_BIT and resume.known and run.config.save_only_model.value:
        yield Hit(
            message=f"{shown(save)}: the run resumes from weights rounded to {save.value}",
            setting=save,
            remedy=Remedy(text="Resume from the sharded checkpoint, which holds the fp32 copies."),
        )


RULE = Rule(code="CFG702", severity=Severity.INFO, cause="checkpoint", check=_check)
