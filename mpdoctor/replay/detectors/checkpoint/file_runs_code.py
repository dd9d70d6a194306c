"""Loading a file of the checkpoint with pickle would run code.

What it looks for
Pickles that name functions which run commands or code, read or write files, or import at will (`os.system`, `builtins.eval`,
`torch.hub.load`...), and, as information, classes of code that is neither torch's nor a known framework's.

Why training breaks
It does not break training: it takes over the machine that loads the file. `torch.load(weights_only=False)`, `pickle.load` and old versions
of most frameworks run whatever the file names.

When it is fine
A class of the run's own code is what pickles are made for; it is only said that loading would import it.

Example
`pytorch_model.bin: unpickling it would run posix.system`

Instead
Do not load the file. Get the weights as safetensors from a source that you trust. mpdoctor runs nothing that a file names.

How to confirm
`python -m pickletools FILE` shows the opcodes without running them.

References
PyTorch: torch.load, warning on untrusted files; torch.serialization.get_unsafe_globals_in_checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints import ProblemKind


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit per file."""
    assert evidence.checkpoint is not None
    for problem in evidence.checkpoint.problems:
        if problem.kind not in (ProblemKind.RUNS_CODE, ProblemKind.FOREIGN_CODE):
            continue
        runs = problem.kind is ProblemKind.RUNS_CODE
        remedy = Remedy(text="Do not load this file with pickle or weights_only=False; get the weights as safetensors.") if runs else None
        yield Hit(
            message=f"{problem.file.name}: {problem.text}",
            at=at(problem.file),
            evidence=(saw(problem.text, problem.file),),
            remedy=remedy,
            severity=Severity.ERROR if runs else Severity.INFO,
            identity=problem.text,
        )


RULE: Rule[CheckpointEvidence] = Rule(code="RUN715", severity=Severity.ERROR, needs=("checkpoint",), check=check)
