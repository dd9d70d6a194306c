"""Part of the checkpoint could be listed but not judged.

What it looks for
Tensors in forms that mpdoctor does not read (sparse, quantised below a byte, views with huge gaps), and files of other frameworks inside
the folder.

Why training breaks
It says nothing about training: it says what the autopsy did not see.

When it is fine
When the part does not matter for the question.

Example
`model.safetensors: 'blocks.0.w': dtype 'F4' is one that mpdoctor cannot read`

Instead
Save the tensor in a plain dtype for the autopsy.

How to confirm
Load it with its own framework.

References
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints import Problem, ProblemKind


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit per file."""
    assert evidence.checkpoint is not None
    files: dict[str, list[Problem]] = {}
    for problem in (*evidence.checkpoint.problems, *(evidence.autopsy.problems if evidence.autopsy else ())):
        if problem.kind is ProblemKind.NOT_JUDGED:
            files.setdefault(str(problem.file), []).append(problem)
    for problems in files.values():
        first, more = problems[0], len(problems) - 1
        text = f"{first.file.name}: {first.text}" + (f" (and {more} more)" if more else "")
        yield Hit(message=text, at=at(first.file, first.tensor), evidence=tuple(saw(p.text, p.file, p.tensor) for p in problems[:10]))


RULE: Rule[CheckpointEvidence] = Rule(code="RUN717", severity=Severity.INFO, needs=("checkpoint",), check=check)
