"""The optimizer's moments are stored in fp16.

What it looks for
Adam's moments in fp16 (of at least half of the optimizer's bytes).

Why training breaks
Second moments are squares of gradients: 2.4e-4 squared is already half of fp16's smallest number. They become zero or lose their bits,
and Adam divides by their root.

When it is fine
bf16 moments have fp32's range and lose only precision. 8-bit optimizers store uint8 with a scale per block.

Example
`moments are float16 (310 MB)`

Instead
Keep the parameters in fp32, so that the optimizer makes its state in fp32, and use autocast.

How to confirm
The experiment "fp32 master weights" of `mpdoctor replay`.

References
PyTorch optimizers make their state in the dtype of the parameter (`torch.zeros_like(p)`).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints.checkpoint import MOMENT_ROLES


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit when fp16 is the main dtype of the moments."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    by_dtype = evidence.autopsy.dtypes.moments
    total = sum(by_dtype.values())
    if not total or by_dtype.get("float16", 0) < total / 2:
        return
    first = next(t for t in evidence.checkpoint.by_role(*MOMENT_ROLES) if t.dtype == "float16")
    text = f"the optimizer keeps its moments in fp16 ({by_dtype['float16']:,} bytes): squares of gradients below 2.4e-4 are zero there"
    yield Hit(message=text, at=at(first.file, first.name), evidence=(saw(f"{first.name} is float16", first.file, first.name),))


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN706", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="low-precision-state", needs=("checkpoint", "autopsy"), check=check
)
