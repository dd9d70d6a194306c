"""Weights are larger than fp16 can hold.

What it looks for
Finite weights of magnitude 65520 or more, which are infinite in fp16. In an fp16 run that is an error; else it is said, because such a
model cannot be moved to fp16.

Why training breaks
Under autocast every weight of a matrix product is cast to fp16 first: the weight becomes infinite and the product NaN.

When it is fine
In bf16 and fp32, as long as the model stays there.

Example
`lm_head.weight: 12 values are above fp16's 65504 (largest 8.2e4)`

Instead
Train in bf16 where the GPU has it, else in fp32; or scale the weight down and its input up by the same power of two.

How to confirm
The experiments "bf16" and "fp32" of `mpdoctor replay`.

References
IEEE 754: the largest fp16 number is 65504; magnitudes from 65520 on round to infinity.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, named, saw
from mpdoctor.replay.checkpoints import Role


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for all weights; a run that is certainly not fp16 rules fp16's range out."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    if evidence.no_fp16:
        text = f"nothing of the run is fp16: it computes in {evidence.autopsy.dtypes.training}"
        yield Exclusion(cause="fp16-range", evidence=saw(text, evidence.checkpoint.path))
    bad = [t for t in evidence.autopsy.by_role(Role.WEIGHT, Role.MASTER, Role.ADAPTER) if t.above_fp16]
    if not bad:
        return
    worst = max(bad, key=lambda t: t.amax)
    fp16 = evidence.compute == "float16"
    count = sum(t.above_fp16 for t in bad)
    text = f"{count:,} weights are above fp16's 65504 (largest {worst.amax:.3g} in {worst.name}; {named(bad)})"
    text += ", and the run computes in fp16" if fp16 else "; the model must not be cast to fp16"
    facts = tuple(saw(f"{t.name}: {t.above_fp16:,} values, largest {t.amax:.4g}", t.entry.file, t.name) for t in bad[:5])
    severity = Severity.ERROR if fp16 else Severity.INFO
    yield Hit(message=text, at=at(worst.entry.file, worst.name), evidence=facts, severity=severity, cause="fp16-range" if fp16 else None)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN707", severity=Severity.ERROR, needs=("checkpoint", "autopsy"), check=check)
