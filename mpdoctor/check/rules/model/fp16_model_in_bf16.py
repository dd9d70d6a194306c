"""A model that was trained in fp16, trained on in bf16.

What it looks for
bf16 compute for a model whose config.json says float16.

Why training breaks
It does not: the range fits, three bits of precision are lost.

When it is fine
Always; said so that nobody looks further.

Example
```yaml hf_trainer bad
# file: train.yaml
model_name_or_path: ./model
use_peft: false
bf16: true
learning_rate: 2.0e-5
output_dir: out
# file: config.json
{"model_type": "opt", "architectures": ["OPTForCausalLM"], "hidden_size": 2048, "vocab_size": 50272, "torch_dtype": "float16"}
```

Instead
```yaml hf_trainer good
# file: train.yaml
model_name_or_path: ./model
use_peft: false
bf16: true
learning_rate: 2.0e-5
output_dir: out
# file: config.json
{"model_type": "opt", "architectures": ["OPTForCausalLM"], "hidden_size": 2048, "vocab_size": 50272, "torch_dtype": "float32"}
```

How to confirm
The loss of the first batch agrees with fp32 to two digits.

References
stas00/ml-engineering, training/dtype.md
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    declared = run.config.model_dtype
    if declared.value == "fp16" and run.computes_in == "bf16":
        yield Hit(
            message=f"{shown(declared)}, trained on in bf16: the range fits, a little precision is lost",
            setting=declared,
            remedy=Remedy(text="Nothing to change."),
        )


RULE = Rule(code="CFG505", severity=Severity.INFO, needs=("compute_dtype",), check=_check)
