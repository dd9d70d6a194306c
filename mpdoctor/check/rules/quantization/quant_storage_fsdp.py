"""4-bit storage that FSDP cannot shard.

What it looks for
FSDP with bitsandbytes 4-bit whose storage dtype differs from the other weights' dtype.

Why training breaks
FSDP flattens parameters of one dtype into one tensor; 4-bit weights stored as uint8 do not fit among 16-bit ones, and wrapping fails.

When it is fine
DDP; FSDP 2 with per-parameter sharding handles it in newer versions.

Example
```yaml hf_trainer bad
# file: train.yaml
model_name_or_path: meta-llama/Llama-3.1-70B
dtype: bfloat16
load_in_4bit: true
bnb_4bit_quant_storage: uint8
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
# file: accelerate.yaml
distributed_type: FSDP
num_processes: 8
mixed_precision: bf16
fsdp_config: {fsdp_version: 1}
```

Instead
```yaml hf_trainer good
# file: train.yaml
model_name_or_path: meta-llama/Llama-3.1-70B
dtype: bfloat16
load_in_4bit: true
bnb_4bit_quant_storage: bfloat16
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
# file: accelerate.yaml
distributed_type: FSDP
num_processes: 8
mixed_precision: bf16
fsdp_config: {fsdp_version: 1}
```

How to confirm
"Must flatten tensors with uniform dtype" at start-up.

References
Comments in LLaMA-Factory's quantisation code; Axolotl's handling of storage dtypes
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    storage = config.quant_storage_dtype
    sharded = str(config.distributed.value).startswith("fsdp")
    if sharded and config.quantization.value == "bnb4" and storage.explicit and storage.value != config.quant_compute_dtype.value:
        yield Hit(
            message=f"{shown(storage)}: FSDP needs 4-bit weights stored in the dtype of the others ({config.quant_compute_dtype.value or 'unknown'})",
            setting=storage,
            remedy=Remedy(text="Set `bnb_4bit_quant_storage` to the dtype of the weights."),
        )


RULE = Rule(code="CFG527", severity=Severity.ERROR, check=_check)
