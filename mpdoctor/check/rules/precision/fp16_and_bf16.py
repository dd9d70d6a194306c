"""fp16 and bf16 switched on together.

What it looks for
Both switches true in one run.

Why training breaks
Transformers raises ("At most one of fp16 and bf16 can be True"), DeepSpeed asserts; Axolotl takes bf16 and says nothing. Which precision the
run is meant to have cannot be told.

When it is fine
Never. `auto` for both, as in DeepSpeed templates for the HF Trainer, is not "both on" and is not reported.

Example
```yaml hf_trainer bad
bf16: true
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
bf16: true
fp16: false
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
The framework stops at start-up and names both switches.

References
transformers `TrainingArguments.__post_init__`; DeepSpeed `runtime/config.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files or ():
        fp16, bf16 = file.config.fp16_requested, file.config.bf16_requested
        if not (fp16.value and bf16.value and fp16.explicit and bf16.explicit):
            continue
        wins = file.dialect == "axolotl"
        yield Hit(
            message=f"{shown(fp16)} and {shown(bf16)} exclude each other" + ("; Axolotl takes bf16" if wins else "; the framework refuses to start"),
            setting=fp16,
            severity=Severity.INFO if wins else None,
            related=(bf16.at,) if bf16.at else (),
            remedy=remedy("Keep one: bf16 from compute capability 8.0 on, fp16 with loss scaling before.", delete(fp16) if wins else None)
            if wins
            else Remedy(text="Keep one: bf16 from compute capability 8.0 on, fp16 with loss scaling before."),
        )


RULE = Rule(code="CFG103", severity=Severity.ERROR, check=_check)
