"""The same key twice.

What it looks for
A key that stands twice in one mapping.

Why training breaks
YAML and JSON readers keep the last one without a word; DeepSpeed raises. One of the two values, often the one that was edited, does nothing.

When it is fine
Never.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
learning_rate: 2.0e-4
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
```

How to confirm
Load the file and print the value.

References
DeepSpeed `runtime/config_utils.py`, dict_raise_error_on_duplicate_keys
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files:
        for duplicate in file.document.duplicates:
            two_files = duplicate.first.file != duplicate.again.file
            # deepy.py turns `-` into `_` after it has looked for the key.
            raises = file.dialect == "deepspeed" or (two_files and file.dialect == "gpt_neox" and "-" not in duplicate.key)
            who = "DeepSpeed" if file.dialect == "deepspeed" else "deepy.py"
            where = str(duplicate.first) if two_files else f"line {duplicate.first.line}"
            yield Hit(
                message=f"`{duplicate.key}` stands {'in two files' if two_files else 'twice'}; "
                + (f"{who} refuses to start" if raises else f"the one at {where} is ignored"),
                at=duplicate.again,
                severity=Severity.ERROR if raises else Severity.INFO if duplicate.same else None,
                related=(duplicate.first,),
                identity=duplicate.key,
                remedy=Remedy(text="Keep one of them."),
            )


RULE = Rule(code="CFG902", severity=Severity.WARNING, check=_check)
