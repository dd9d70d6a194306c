"""A quoted boolean.

What it looks for
"true", "false", "True", "False" in quotes under a key that takes a boolean, in dialects that do not convert.

Why training breaks
The string "false" is true.

When it is fine
Accelerate writes 'no' and 'yes' in quotes on purpose; argparse converts.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: "false"
fp16: false
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: false
fp16: false
```

How to confirm
Load the file and print the type.

References
Follows from Python's truth of strings.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import remedy
from mpdoctor.check.sources.node import Node
from mpdoctor.check.subject import CheckSubject, ConfigFile
from mpdoctor.core.finding import Edit, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_KEYS = (
    "bf16", "fp16", "tf32", "enabled", "load_in_4bit", "load_in_8bit", "use_peft", "gradient_checkpointing", "pure_bf16", "fp16_full_eval",
    "bf16_full_eval", "torch_compile", "amp", "full_bf16", "full_fp16", "no_half_vae",
)  # fmt: skip


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files:
        if file.dialect == "accelerate" or file.document.syntax not in ("yaml", "json", "toml"):
            continue
        for key, node in file.document.root.walk():
            if node.quoted and isinstance(node.value, str) and node.value.lower() in ("true", "false") and key.rpartition(".")[2] in _KEYS:
                setting = Setting(node.value, Origin.EXPLICIT, node.span(key), node.raw)
                yield Hit(
                    message=f'`{key}: "{node.raw}"` is a text, and every text is true',
                    setting=setting,
                    remedy=remedy("Take the quotes away.", Edit(at=node.span(key), old=f"{_quote(file, node)}", new=node.value.lower())),
                )


def _quote(file: ConfigFile, node: Node) -> str:
    """The value as it stands in the file, quotes included."""
    lines = file.document.text.split("\n")
    line = lines[node.value_line - 1] if 0 < node.value_line <= len(lines) else ""
    return f"'{node.raw}'" if f"'{node.raw}'" in line else f'"{node.raw}"'


RULE = Rule(code="CFG903", severity=Severity.WARNING, check=_check)
