"""4-bit and 8-bit loading together.

What it looks for
`load_in_4bit` and `load_in_8bit` both true.

Why training breaks
The loader raises.

When it is fine
Never.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_4bit: true
load_in_8bit: true
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_4bit: true
load_in_8bit: false
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
The loader's message.

References
transformers BitsAndBytesConfig; TRL ModelConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files:
        for base in ("", "quantization_config.", "training."):
            four, eight = file.node(f"{base}load_in_4bit"), file.node(f"{base}load_in_8bit")
            if four is not None and eight is not None and four.value is True and eight.value is True:
                setting = Setting(True, Origin.EXPLICIT, eight.span(f"{base}load_in_8bit"), eight.raw)
                yield Hit(
                    message="load_in_4bit and load_in_8bit exclude each other; the loader refuses both",
                    setting=setting,
                    related=(four.span(f"{base}load_in_4bit"),),
                    remedy=Remedy(text="Keep one."),
                )


RULE = Rule(code="CFG525", severity=Severity.ERROR, check=_check)
