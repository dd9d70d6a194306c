"""Whole weight matrices in the checkpoint are exactly zero, or empty.

What it looks for
Matrices of the model that hold nothing but zeros, or no values at all, when they are at least half of its matrices.

Why training breaks
The file does not hold the model. ZeRO-3 and FSDP keep a shard of each weight on each rank: a save that does not gather them first writes
empty tensors or placeholders. A run that starts from such a file starts from nothing, with a loss that looks like one of random guesses.

When it is fine
Weights that start at zero on purpose (LoRA's B, ControlNet's and adaLN's zero layers) are single layers, not half of a model; adapters
are left out.

Example
`144 of 146 matrices are empty (model.layers.0.self_attn.q_proj.weight and 143 more)`

Instead
Gather before saving: `stage3_gather_16bit_weights_on_model_save` (DeepSpeed), a full state dict (FSDP); or convert the sharded checkpoint
(`zero_to_fp32.py`, `accelerate merge-weights`).

How to confirm
Load the file and look at one of the named tensors.

References
DeepSpeed, "ZeRO-3: saving a 16-bit model"; huggingface/accelerate: FSDP, state dict types.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, named, saw
from mpdoctor.replay.checkpoints import Role

_SHARE = 0.5
_REMEDY = "Save again with the weights gathered (ZeRO-3, FSDP), or take an older checkpoint."


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for empty matrices, one for zero ones."""
    assert evidence.autopsy is not None
    weights = [t for t in evidence.autopsy.by_role(Role.WEIGHT) if t.entry.dtype.startswith(("float", "bfloat"))]
    matrices = [t for t in weights if len(t.entry.shape) >= 2]
    empty = [t for t in weights if t.entry.numel == 0]
    zero = [t for t in matrices if t.entry.numel > 1 and t.amax == 0 and not t.nonfinite]
    for bad, among, what in ((empty, weights, "empty"), (zero, matrices, "exactly zero")):
        if bad and len(bad) >= _SHARE * len(among):
            kind = "tensors" if among is weights else "matrices"
            text = f"{len(bad)} of {len(among)} {kind} are {what} ({named(bad, 1)})"
            facts = tuple(saw(f"{t.name}: {what}", t.entry.file, t.name) for t in bad[:5])
            yield Hit(message=text, at=at(bad[0].entry.file, bad[0].name), evidence=facts, remedy=Remedy(text=_REMEDY), identity=what)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN727", severity=Severity.ERROR, cause="checkpoint", needs=("autopsy",), check=check)
