"""transformers 5 loads weights in the checkpoint's dtype.

What it looks for
A HF Trainer config for version 5, with mixed precision, a model by name, and no dtype.

Why training breaks
Version 4 loaded fp32 unless told; version 5 loads what the file holds. A bf16 checkpoint then trains as bf16 weights without fp32 copies (lost
updates), an fp16
one stops at the scaler.

When it is fine
Adapters; ZeRO and FSDP; a script that passes a dtype.

Example
```yaml hf_trainer bad version=5.0
model_name_or_path: meta-llama/Llama-3.1-8B
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good version=5.0
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: float32
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` lists the dtypes of weights and moments.

References
transformers 5 `modeling_utils.py`, dtype="auto"
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    version = str(config.framework_version.value or "")
    if run.dialect != "hf_trainer" or not version.startswith("5") or config.setting("hf.trl").value or run.trains_adapters:
        return
    if run.computes_in in SIXTEEN_BIT and not config.param_dtype.known and config.param_dtype.at is None and config.model.known:
        if str(config.distributed.value).startswith(("zero", "fsdp")):
            return
        yield Hit(
            message=f"no `dtype`: transformers {version} loads the weights in the checkpoint's own dtype",
            setting=config.model,
            identity="missing dtype",
            remedy=Remedy(text="Load with `dtype: float32` for autocast training."),
        )


RULE = Rule(code="CFG819", severity=Severity.INFO, cause="low-precision-state", check=_check)
