"""A target is longer than the input that the loss aligns it with.

What it looks for
Transcripts with more tokens (and blanks between equal neighbours) than the model makes frames of their audio.

Why training breaks
CTC has no alignment for such a pair: its probability is 0 and its loss infinite. The gradient is NaN, and with the next step every weight.

When it is fine
With `ctc_zero_infinity=True` the row counts as 0 and teaches nothing.

Example
`train.jsonl, line 4: 61 labels for 49 frames`

Instead
Take the row out (its audio is cut, or belongs to another text), or set `ctc_zero_infinity=True`.

How to confirm
The experiment "failing batch out" of `mpdoctor replay`.

References
PyTorch: torch.nn.CTCLoss, `zero_infinity`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.data_evidence import DataEvidence, FaultKind, facts, place_of, told


def check(evidence: DataEvidence) -> Iterator[Hit]:
    """One hit for all such rows among those that were read."""
    faults = evidence.of(FaultKind.TARGET)
    if faults:
        yield Hit(message=told(faults, evidence.path), at=place_of(faults[0], evidence.path), evidence=facts(faults, evidence.path))


RULE: Rule[DataEvidence] = Rule(code="RUN123", severity=Severity.ERROR, cause="dirty-data", check=check)
