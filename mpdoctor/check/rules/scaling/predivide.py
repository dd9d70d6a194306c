"""fp16 gradients of many ranks summed before they are divided.

What it looks for
Gradient reduction in fp16 over 64 ranks or more without division before the sum.

Why training breaks
Scaled gradients fill fp16's range on one rank already; a sum over n ranks is n times as large before it is divided, and overflows.

When it is fine
Reduction in fp32 or bf16; frameworks that divide first.

Example
```yaml hf_trainer bad
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
fp16: true
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"}}
# file: accelerate.yaml
distributed_type: DEEPSPEED
num_processes: 128
mixed_precision: fp16
```

Instead
```yaml hf_trainer good
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
fp16: true
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"}, "communication_data_type": "fp32"}
# file: accelerate.yaml
distributed_type: DEEPSPEED
num_processes: 128
mixed_precision: fp16
```

How to confirm
Overflows that vanish with fewer ranks.

References
DeepSpeed `prescale_gradients`, `gradient_predivide_factor`; pytorch/pytorch#123362
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.reduce_dtype.value != "fp16" or config.predivide.value is not False or config.world_size.value is None:
        return
    if config.world_size.value >= run.thresholds.ranks_many and config.distributed.value not in ("fsdp1", "fsdp2"):
        yield Hit(
            message=f"gradients of {config.world_size.value} ranks are summed in fp16 before they are divided, and overflow",
            setting=config.reduce_dtype,
            remedy=Remedy(text="Reduce in fp32 (`communication_data_type: fp32`), or divide before the sum (`prescale_gradients: true`)."),
        )


RULE = Rule(code="CFG213", severity=Severity.WARNING, cause="loss-scaling", needs=("reduce_dtype", "world_size"), check=_check)
