"""Adam's second moment underflowed: it is zero where the first moment is not.

What it looks for
Second moments (`exp_avg_sq`) with more zeros than the first moment (`exp_avg`) of the same parameter: at least that many elements
have v = 0 and m != 0. More than 1 % is reported.

Why training breaks
v averages squared gradients. In fp16 the square of any gradient below 2.4e-4 is zero. Adam's update is m / (sqrt(v) + eps): with v = 0 it
is m / eps, with eps = 1e-8 up to a hundred million times too large; when eps is rounded to zero in fp16 as well it is m / 0 = inf.

When it is fine
In fp32 v underflows only for gradients below 1e-23. Parameters without gradient have zeros in both moments and are not counted.

Example
`state.0.exp_avg_sq (float16): at least 93% of elements are zero while exp_avg is not`

Instead
Keep optimizer state in fp32: fp32 master weights, with autocast for the forward pass. 8-bit optimizers scale v block by block and are fine.

How to confirm
The experiments "fp32 master weights" and "Adam eps 1e-6" of `mpdoctor replay`.

References
D. Kingma, J. Ba: Adam, algorithm 1. The smallest fp16 number is 2^-24, so squares below 2^-25 become zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, percent, saw

_SHARE = 0.01


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit, naming the worst parameter."""
    assert evidence.autopsy is not None
    optimizer = evidence.autopsy.optimizer
    if optimizer is None:
        return
    worst = sorted(((share, name) for name, share in optimizer.underflowed.items() if share > _SHARE), reverse=True)
    if not worst:
        return
    moments = {t.name: t for t in optimizer.second}
    share, name = worst[0]
    moment = moments[name]
    about = "" if moment.exact else " (by a sample)"
    text = f"{name} ({moment.entry.dtype}): at least {percent(share)} of elements are zero while their first moment is not{about}; {len(worst)} of "
    text += f"{len(moments)} second moments are like this, and Adam divides by their root"
    facts = tuple(saw(f"{n}: at least {percent(s)}", moments[n].entry.file, n) for s, n in worst[:5])
    remedy = Remedy(text="Keep weights and optimizer state in fp32, with autocast for the forward pass; until then raise Adam's eps to 1e-6.")
    yield Hit(message=text, at=at(moment.entry.file, name), evidence=facts, remedy=remedy)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN704", severity=Severity.ERROR, cause="low-precision-state", needs=("autopsy",), check=check)
