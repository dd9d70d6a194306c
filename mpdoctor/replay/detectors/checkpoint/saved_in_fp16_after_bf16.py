"""The run computed in bf16 and saved its weights in fp16.

What it looks for
Weights stored in fp16 by a run whose settings say bf16.

Why training breaks
A cast from bf16 to fp16 makes magnitudes of 65520 and more infinite and those below 3e-8 zero. The run itself was fine; its file is not
what it trained, and a run resumed from it is another run.

When it is fine
When every weight lies well inside fp16's range: then the cast only adds bits. The hit says how many do not.

Example
`the run computes in bfloat16 and its weights are stored in float16: 3 infinite, 2.1% zero or subnormal`

Instead
Save in bf16 or fp32 (`model.to(torch.bfloat16)` before saving, `save_precision: bf16`).

How to confirm
Compare the file with the weights in memory.

References
kohya sd-scripts: save_precision; InternEvo#278; facebookresearch/metaseq PR#254.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, percent, saw
from mpdoctor.replay.checkpoints import Role


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the whole model."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    story = evidence.autopsy.dtypes
    if story.training != "bfloat16" or story.main != "float16":
        return
    weights = [t for t in evidence.autopsy.by_role(Role.WEIGHT) if t.entry.dtype == "float16"]
    numel, infinite = sum(t.numel for t in weights), sum(t.infs for t in weights)
    small = sum(t.share(t.zeros + t.subnormals) * t.numel for t in weights) / numel if numel else 0.0
    text = f"the run computes in bfloat16 and its weights are stored in float16: {infinite:,} infinite, {percent(small)} zero or subnormal"
    yield Hit(
        message=text,
        at=at(evidence.checkpoint.path),
        evidence=(saw(text, evidence.checkpoint.path),),
        severity=Severity.ERROR if infinite else Severity.WARNING,
        confidence=Confidence.HIGH if infinite else Confidence.MEDIUM,
    )


RULE: Rule[CheckpointEvidence] = Rule(code="RUN723", severity=Severity.WARNING, cause="checkpoint", needs=("checkpoint", "autopsy"), check=check)
