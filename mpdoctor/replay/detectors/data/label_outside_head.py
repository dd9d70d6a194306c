"""A label has no output in the model's head.

What it looks for
Class numbers below 0 (other than -100, which losses leave out) or from the head's size on; regression labels that are no finite number.

Why training breaks
Cross-entropy reads the logit of the label. On a CPU it raises; on a GPU the kernel stops with "device-side assert triggered", after which
every call fails, far from the cause. A NaN label makes the loss NaN and, with the next step, every weight.

When it is fine
-100 is the label that PyTorch's losses leave out.

Example
`train.jsonl, line 58: label 3, and the head has 3 outputs (0 to 2)`

Instead
Take the row out, map its label (`label2id`), or build the model with as many labels as the data has (`num_labels`).

How to confirm
The experiment "failing batch out" of `mpdoctor replay`.

References
PyTorch: torch.nn.CrossEntropyLoss; huggingface/transformers: `problem_type` of sequence classification.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.data_evidence import DataEvidence, FaultKind, facts, place_of, told


def check(evidence: DataEvidence) -> Iterator[Hit]:
    """One hit for all such rows; less sure as the cause where no replayed step reads one."""
    faults = evidence.of(FaultKind.LABEL)
    if faults:
        sure = Confidence.HIGH if faults[0].row in evidence.replayed else Confidence.MEDIUM
        yield Hit(message=told(faults, evidence.path), at=place_of(faults[0], evidence.path), evidence=facts(faults, evidence.path), confidence=sure)


RULE: Rule[DataEvidence] = Rule(code="RUN121", severity=Severity.ERROR, cause="dirty-data", check=check)
