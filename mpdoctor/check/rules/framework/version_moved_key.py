"""A key that this version of transformers does not have.

What it looks for
Keys of transformers 4 (`warmup_ratio`, `evaluation_strategy`, `fp16_opt_level`, `adafactor`, ...) where version 5 is in use. Which version is in
use is taken
from `--framework-version`, or from keys that only version 5 has.

Why training breaks
HfArgumentParser stops at keys that nobody uses; YAML readers of other tools drop them, and the default applies.

When it is fine
With the version that the key belongs to.

Example
```yaml hf_trainer bad version=5.0
learning_rate: 2.0e-5
output_dir: out
bf16: true
evaluation_strategy: steps
```

Instead
```yaml hf_trainer good version=5.0
learning_rate: 2.0e-5
output_dir: out
bf16: true
eval_strategy: steps
```

How to confirm
Start the run: "Some keys are not used by the HfArgumentParser".

References
TrainingArguments of transformers 4.46 and 5.24 compared
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.hf_arguments import V4_KEYS, V5_KEYS
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_NOW = {
    "evaluation_strategy": "eval_strategy", "warmup_ratio": "warmup_steps", "no_cuda": "use_cpu", "adafactor": "optim: adafactor",
    "group_by_length": "train_sampling_strategy", "gradient_checkpointing": "activation_checkpointing",
}  # fmt: skip


def _check(run: CheckSubject) -> Iterator[Hit]:
    version = str(run.config.framework_version.value or "")
    given = run.config.framework_version.note == "given on the command line"
    for file in run.of("hf_trainer"):
        if file.document.syntax == "pickle" or not (version.startswith("5") and (given or any(file.node(key) for key in V5_KEYS))):
            continue
        for key in V4_KEYS:
            node = file.node(key)
            if node is None or node.value is None:
                continue
            now = _NOW.get(key)
            yield Hit(
                message=f"`{key}` is a key of transformers 4; version {version} does not have it",
                setting=Setting(node.scalar, Origin.EXPLICIT, node.span(key), node.raw),
                remedy=Remedy(text=f"Use `{now}`." if now else "Take it out."),
            )


RULE = Rule(code="CFG807", severity=Severity.WARNING, check=_check)
