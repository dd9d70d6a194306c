"""Small weights of an fp16 file were flushed to zero: it was probably cast from a wider dtype.

What it looks for
Matrices in fp16 of which at least 1 % are exactly zero and at least 1 % are subnormal (below 6.1e-5): the trail of a cast. Pruned weights
have zeros without subnormals.

Why training breaks
A cast to fp16 rounds magnitudes below 3e-8 to zero and leaves those below 6.1e-5 with few bits. A bf16 model whose small weights matter
(norm gains, embeddings of rare tokens, low-rank factors) is damaged for good.

When it is fine
Weights whose useful values are all larger lose nothing that matters.

Example
`experts.7.w1: 4.2% exactly zero and 11% subnormal in fp16`

Instead
Convert from the original file, to bf16 or fp32.

How to confirm
Compare with the file that it was made from.

References
facebookresearch/metaseq PR#254 (a bf16 run restarted through fp16).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, percent, saw
from mpdoctor.replay.checkpoints import Role

_SHARE = 0.01


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for all matrices, naming the worst."""
    assert evidence.autopsy is not None
    bad = [
        t
        for t in evidence.autopsy.by_role(Role.WEIGHT)
        if t.entry.dtype == "float16" and len(t.entry.shape) >= 2 and t.share(t.zeros) >= _SHARE and t.share(t.subnormals) >= _SHARE
    ]
    if not bad:
        return
    worst = max(bad, key=lambda t: t.share(t.zeros))
    text = f"{worst.name}: {percent(worst.share(worst.zeros))} exactly zero and {percent(worst.share(worst.subnormals))} subnormal in fp16"
    text += f"; {len(bad)} matrices look as if they had been cast to fp16 from a wider dtype"
    facts = tuple(saw(f"{t.name}: {percent(t.share(t.zeros))} zero", t.entry.file, t.name) for t in bad[:5])
    yield Hit(message=text, at=at(worst.entry.file, worst.name), evidence=facts)


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN713", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="checkpoint", needs=("autopsy",), check=check
)
