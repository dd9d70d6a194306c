"""config.json and the weights' file name different dtypes.

What it looks for
The dtype in a model's config.json against the dtype in the headers of its weights.

Why training breaks
Loaders that follow the config (transformers 5 does by default) cast the weights on loading: fp32 weights lose bits, bf16 weights overflow in fp16.

When it is fine
When the loader is told a dtype.

Example
```json hf_model_config bad
# file: config.json
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 32000, "dtype": "float16"}
# file: facts.json
{"global_step": 20, "log_history": [], "weights": {"float32": 1000000}}
```

Instead
```json hf_model_config good
# file: config.json
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 32000, "dtype": "float32"}
# file: facts.json
{"global_step": 20, "log_history": [], "weights": {"float32": 1000000}}
```

How to confirm
`mpdoctor replay CHECKPOINT` lists the dtypes of the stored tensors.

References
transformers `modeling_utils.py`, _get_dtype
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    declared, stored = run.config.model_dtype, run.config.stored_dtype
    if declared.value in ("fp16", "bf16", "fp32") and stored.value in ("fp16", "bf16", "fp32") and declared.value != stored.value:
        yield Hit(
            message=f"{shown(declared)}, but the weights are stored in {stored.value}: loaders that follow the config cast them",
            setting=declared,
            related=(stored.at,) if stored.at else (),
            remedy=Remedy(text="Rewrite the config, or load with an explicit dtype."),
        )


RULE = Rule(code="CFG703", severity=Severity.WARNING, cause="checkpoint", check=_check)
