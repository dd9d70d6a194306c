"""fp8 with fp16 for everything else.

What it looks for
Transformer Engine with fp16 weights and no scaler.

Why training breaks
Whatever does not run in fp8 runs in fp16, without loss scaling: gradients below 6e-8 are zero.

When it is fine
Never; bf16 is there on every GPU that has fp8.

Example
```yaml lightning bad
trainer: {precision: transformer-engine-float16, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
```

Instead
```yaml lightning good
trainer: {precision: transformer-engine, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of gradients flushed to zero.

References
Lightning `plugins/precision/transformer_engine.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.fp8.value and run.computes_in == "fp16" and config.scaler.value in ("none", None):
        yield Hit(
            message=f"{shown(config.compute_dtype)}: what is not fp8 runs in fp16 without loss scaling",
            setting=config.compute_dtype,
            remedy=Remedy(text="Use bf16 beside fp8 (`transformer-engine`)."),
        )


RULE = Rule(code="CFG546", severity=Severity.WARNING, cause="loss-scaling", needs=("compute_dtype",), check=_check)
