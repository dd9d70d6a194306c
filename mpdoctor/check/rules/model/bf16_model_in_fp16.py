"""A model that was trained in bf16, trained on in fp16.

What it looks for
fp16 compute for a model whose config.json says bfloat16.

Why training breaks
A model trained in bf16 never had to stay below 65504. Its activations and weights may lie above, and become infinite in fp16.

When it is fine
Many small models stay in range by luck; the first steps tell.

Example
```yaml hf_trainer bad
# file: train.yaml
model_name_or_path: ./model
use_peft: false
fp16: true
learning_rate: 2.0e-5
output_dir: out
# file: config.json
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 32000, "dtype": "bfloat16"}
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
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 32000, "dtype": "bfloat16"}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the largest activation per layer against 65504.

References
stas00/ml-engineering, training/dtype.md, "Changing precision post training"
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    declared = run.config.model_dtype
    stored = run.config.stored_dtype
    origin = declared if declared.value == "bf16" else stored
    if origin.value == "bf16" and run.computes_in == "fp16":
        yield Hit(
            message=f"the model is a bf16 one ({shown(origin)}) and runs in fp16, whose range ends at 65504",
            setting=run.config.compute_dtype,
            related=(origin.at,) if origin.at else (),
            remedy=remedy("Train in bf16 where the GPU has it.", *to_bf16(run)),
        )


RULE = Rule(code="CFG504", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="fp16-range", needs=("compute_dtype",), check=_check)
