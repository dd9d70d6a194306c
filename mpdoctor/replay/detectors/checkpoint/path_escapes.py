"""A name or link inside the checkpoint points out of its folder.

What it looks for
Index files and archives whose file names are absolute or climb out (`../../etc/passwd`), and links that leave the folder.

Why training breaks
It does not; it makes a loader read, or an unpacker write, files that are not the checkpoint's. mpdoctor did not follow it.

When it is fine
Links into a content store around the folder (the Hugging Face cache, git-annex, DVC) are followed.

Example
`model.safetensors.index.json: the name '../secret.safetensors' points out of the checkpoint's folder`

Instead
Copy the file into the folder, or pass the folder that holds it.

How to confirm
`ls -l` in the folder; look at `weight_map` in the index.

References
CWE-22: path traversal.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints import ProblemKind


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit per name."""
    assert evidence.checkpoint is not None
    for problem in evidence.checkpoint.problems:
        if problem.kind is ProblemKind.ESCAPES:
            text = f"{problem.file.name}: {problem.text}"
            remedy = Remedy(text="Copy the file into the folder, or pass the folder that holds it; mpdoctor did not follow the name.")
            yield Hit(message=text, at=at(problem.file), evidence=(saw(problem.text, problem.file),), remedy=remedy, identity=problem.text)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN716", severity=Severity.ERROR, cause="checkpoint", needs=("checkpoint",), check=check)
