"""Training scripts and notebooks, judged by their syntax tree and never executed.

`source` and `notebook` give Python text with its places; `walk` goes over the tree once (`scopes` holds
what it finds); `model.Script` answers questions about names, classes and values (`names`, `classes`, `values`);
`dtypes`, `autocast`, `precision` and `weights` those about precision; `objects`, `steps` and `guards` say what a
training loop does, in which order and under which tests; `patterns`, `exponentials` and `differentiable` know the
shapes of numeric code. A rule is one file in `rules` and speaks through `hits` and `patch`: to add one, add a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.notebook import read_notebook
from mpdoctor.check.scripts.source import read_script, too_deep
from mpdoctor.core import rule
from mpdoctor.core.finding import Finding
from mpdoctor.core.rule import RuleRun, Skipped

RULES = "mpdoctor.check.scripts.rules"
"""Package of the script rules."""

_FRAMEWORK = re.compile(r"\b(?:import|from)\s+(?:torch|lightning|pytorch_lightning|accelerate|transformers|deepspeed|apex)\b")
_NUMERIC = re.compile(
    r"backward|autocast|GradScaler|optim|nn\.Module|\.half\(|bfloat16|float16|masked_fill|softmax|Trainer|LightningModule|\.sqrt\(|\.exp\(|\.log\("
)


def looks_like_training(text: str) -> bool:
    """Whether a text may be a script or notebook that trains or defines a model: a cheap filter for walks over folders."""
    return _FRAMEWORK.search(text) is not None and _NUMERIC.search(text) is not None


def lint_script(path: str, text: str, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> RuleRun:
    """Run the script rules over one Python script (`.py`) or notebook (`.ipynb`).

    Args:
        path: the file's path, as findings name it; its suffix tells a notebook.
        text: the file's text.
        select: codes, code prefixes or slugs of the rules to run; empty for all.
        ignore: codes, code prefixes or slugs of the rules to leave out.

    Raises:
        UnreadableInput: the text is no Python 3, no notebook, or too large or too deeply nested.
        NothingToJudge: a notebook in another language.
    """
    source = read_notebook(path, text) if path.endswith(".ipynb") else read_script(path, text)
    try:
        script = Script(source)
        if not script.uses_torch:
            return RuleRun((), (), (*source.skipped, Skipped(what=path, why="it imports neither torch nor a framework on top of it")), ())
        rules = [r for r in rule.load(RULES) if rule.selected(r.code, r.slug, select=select, ignore=ignore)]
        ran = rule.run(rules, script, lambda _script, _field: True)
    except RecursionError:
        raise too_deep(path) from None
    deep = next((crash for crash in ran.crashes if crash.error.startswith("RecursionError")), None)
    if deep is not None:
        raise too_deep(path)
    return RuleRun(_distinct(ran.findings), ran.exclusions, (*source.skipped, *ran.skipped), ran.crashes)


def _distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings without those that another path through the script's functions reached before, in the order of the file."""
    found: dict[tuple[str, object], Finding] = {}
    for finding in findings:
        known = found.get((finding.code, finding.location))
        if known is None or finding.severity.rank > known.severity.rank:
            found[(finding.code, finding.location)] = finding
    return tuple(sorted(found.values(), key=_place))


def _place(finding: Finding) -> tuple[int, int, str]:
    at = finding.location
    return getattr(at, "line", None) or 0, getattr(at, "column", None) or 0, finding.code
