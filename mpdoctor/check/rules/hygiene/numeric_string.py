"""A number that PyYAML reads as text.

What it looks for
`2e-5`, `1e8` and the like, unquoted, under a numeric key of a YAML file that bare PyYAML reads: YAML 1.1 wants a dot and a signed exponent
(`2.0e-5`).

Why training breaks
With bare PyYAML the value arrives as the string "2e-5", and the optimizer stops with "'<=' not supported between instances of 'float' and
'str'", often after the model was loaded.

When it is fine
OmegaConf, argparse, pydantic and Lightning convert such values; the frameworks that read their files with these are not told.

Example
```yaml hf_trainer bad
learning_rate: 2e-5
output_dir: out
bf16: true
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
```

How to confirm
`python -c "import yaml; print(yaml.safe_load('lr: 2e-5'))"` prints a string.

References
hiyouga/LlamaFactory#4014, salesforce/ALBEF#128, h2oai/h2o-llmstudio#699; YAML 1.1, "Floating-Point"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, ConfigFile
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_NUMBER = re.compile(r"(?P<digits>[-+]?\d+)(?P<point>\.\d*)?[eE](?P<sign>[-+]?)(?P<power>\d+)")
_NUMERIC = re.compile(
    r"(^|_)(lr|rate|eps|epsilon|decay|ratio|norm|momentum|scale|alpha|beta\d?|betas|tokens|steps|clip|dropout|temperature|weight)s?\d?(_|$)"
)


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files:
        if file.document.syntax == "yaml" and file.plain_yaml:
            yield from _texts(file)


def _texts(file: ConfigFile) -> Iterator[Hit]:
    for key, node in file.document.root.walk():
        match = _NUMBER.fullmatch(node.value) if isinstance(node.value, str) and not node.quoted else None
        if match is None or not _NUMERIC.search(key.rpartition(".")[2].lower() if not key[-1:].isdigit() else key.lower()):
            continue
        better = f"{match['digits']}{match['point'] or '.0'}{'0' if match['point'] == '.' else ''}e{match['sign'] or '+'}{match['power']}"
        setting = Setting(node.value, Origin.EXPLICIT, node.span(key), node.raw)
        yield Hit(
            message=f"`{key}: {node.raw}` is text to PyYAML, not a number; the optimizer will refuse it",
            setting=setting,
            remedy=remedy(f"Write {better}.", change(setting, better)),
        )


RULE = Rule(code="CFG901", severity=Severity.WARNING, check=_check)
