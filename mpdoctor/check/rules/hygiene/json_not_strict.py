"""A JSON config that Python's json module does not read.

What it looks for
Comments, trailing commas, keys or strings without quotes in a JSON file that is not DeepSpeed's.

Why training breaks
`json.load` stops at it. DeepSpeed reads its file with hjson, which takes all of that, so such a file works there and nowhere else.

When it is fine
Files with the suffix .jsonc, .json5 or .hjson.

Example
```json hf_trainer bad
{
  "learning_rate": 2e-5,
  "output_dir": "out",
  "bf16": true,
}
```

Instead
```json hf_trainer good
{
  "learning_rate": 2e-5,
  "output_dir": "out",
  "bf16": true
}
```

How to confirm
`python -m json.tool FILE`

References
transformers `HfArgumentParser.parse_json_file`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files:
        document = file.document
        if document.syntax != "json" or file.dialect == "deepspeed" or not document.path.endswith(".json"):
            continue
        # Bare NaN is what Python itself writes and reads.
        found = [
            (at, what)
            for at, what in document.leniencies
            if "bare word NaN" not in what and "bare word Infinity" not in what and "bare word -Inf" not in what
        ]
        if found:
            at, what = found[0]
            more = f" (and {len(found) - 1} more such places)" if len(found) > 1 else ""
            yield Hit(message=f"{what} is no JSON; json.load stops at it{more}", at=at, identity=what, remedy=Remedy(text="Write strict JSON."))


RULE = Rule(code="CFG905", severity=Severity.WARNING, check=_check)
