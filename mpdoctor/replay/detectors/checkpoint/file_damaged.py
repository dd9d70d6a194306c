"""Files of the checkpoint are truncated, missing, empty, or contradict each other.

What it looks for
Files that end before their data, shards that the index names and that are not there, sizes, offsets and dtypes that do not fit, tensors
stored twice, JSON that ends too early, files without permission.

Why training breaks
Loaders fail, or worse: they fill what they miss with fresh random weights (`strict=False`, transformers' "newly initialized") and training
goes on from a half-made model.

When it is fine
While the run is still writing the checkpoint.

Example
`model-00002-of-00004.safetensors: the index places 71 tensors in it, and it is not there`

Instead
Copy the checkpoint again, or use the one before it. A save that did not finish usually met a full disk or the job's time limit.

How to confirm
Compare file sizes with the machine that wrote them.

References
safetensors: format description, README of huggingface/safetensors.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints import Problem, ProblemKind

_DAMAGE = frozenset(
    {
        ProblemKind.TRUNCATED,
        ProblemKind.EMPTY,
        ProblemKind.MISSING,
        ProblemKind.MALFORMED,
        ProblemKind.DISAGREES,
        ProblemKind.DUPLICATE,
        ProblemKind.UNREADABLE,
        ProblemKind.TOO_BIG,
    }
)


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit per file and kind of damage."""
    assert evidence.checkpoint is not None
    groups: dict[tuple[str, ProblemKind], list[Problem]] = {}
    for problem in (*evidence.checkpoint.problems, *(evidence.autopsy.problems if evidence.autopsy else ())):
        if problem.kind in _DAMAGE:
            groups.setdefault((str(problem.file), problem.kind), []).append(problem)
    for (_, kind), problems in groups.items():
        first = problems[0]
        more = f" (and {len(problems) - 1} more of this kind)" if len(problems) > 1 else ""
        facts = tuple(saw(p.text, p.file, p.tensor) for p in problems[:10])
        message = f"{first.file.name}: {first.text}{more}"
        yield Hit(message=message, at=at(first.file, first.tensor), evidence=facts, remedy=_remedy(kind), identity=kind.value)


def _remedy(kind: ProblemKind) -> Remedy:
    match kind:
        case ProblemKind.TRUNCATED | ProblemKind.EMPTY | ProblemKind.MISSING:
            return Remedy(text="Copy the checkpoint again, or use the one before it: the save or the copy did not finish.")
        case ProblemKind.DISAGREES | ProblemKind.DUPLICATE:
            return Remedy(text="Keep the shards and the index of one save only, or save the model again.")
        case ProblemKind.UNREADABLE:
            return Remedy(text="Give permission to read the file, and put a regular file in its place.")
        case _:
            return Remedy(text="Save the file again with its own writer, or use the checkpoint before it.")


RULE: Rule[CheckpointEvidence] = Rule(code="RUN714", severity=Severity.ERROR, cause="checkpoint", needs=("checkpoint",), check=check)
