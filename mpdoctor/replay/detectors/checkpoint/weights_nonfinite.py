"""Weights or buffers in the checkpoint are NaN or infinite.

What it looks for
NaN or infinity in any stored weight, buffer, adapter weight, master weight or moving average.

Why training breaks
A NaN weight makes every output that it touches NaN, and every later step keeps it. An infinite weight becomes NaN as soon as it
meets a zero (0 times infinity) or another infinity of the other sign. Nothing in training repairs either.

When it is fine
Masks stored as buffers use -inf on purpose (a causal mask, an ALiBi table). Buffers whose name says so are left out.

Example
`model.layers.3.mlp.down_proj.weight: 4096 of 4096 values are NaN, first at [0, 0]`

Instead
Go back to the last checkpoint whose weights are finite. Infinities without NaN in an fp16 file come from a cast: values above
65504 became infinite. Load the file that it was made from, in its own dtype.

How to confirm
`mpdoctor replay` on the checkpoint before this one shows where the first non-finite value came from.

References
IEEE 754-2019, section 6: arithmetic with infinities and NaN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.autopsy.result import TensorStats
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, named, saw
from mpdoctor.replay.checkpoints.checkpoint import MODEL_ROLES

_MASK = re.compile(r"(^|[._])(mask|masks|attn_mask|causal_mask|bias_mask|masked_bias|alibi)$", re.IGNORECASE)


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for all tensors, naming the first."""
    assert evidence.autopsy is not None
    bad = [t for t in evidence.autopsy.nonfinite(*MODEL_ROLES) if not _deliberate(t)]
    if not bad:
        return
    first = bad[0]
    cast = all(t.entry.dtype == "float16" and t.infs and not t.nans for t in bad)
    where = f"first at {list(first.first_nonfinite or ())}"
    text = f"{first.name}: {_kinds(first)} of {first.numel:,} values, {where}"
    if len(bad) > 1:
        text = f"{len(bad)} tensors hold NaN or infinity ({named(bad)}); {text}"
    if cast:
        text += "; infinities without NaN in fp16 are values above 65504 that were cast to it"
        remedy = Remedy(text="Load the file that this one was made from, in its own dtype (bf16 or fp32); do not cast it to fp16.")
    else:
        remedy = Remedy(text="Go back to the last checkpoint whose weights are finite.")
    facts = tuple(saw(f"{t.name}: {_kinds(t)} of {t.numel:,}", t.entry.file, t.name) for t in bad[:10])
    yield Hit(message=text, at=at(first.entry.file, first.name), evidence=facts, remedy=remedy, identity=f"{len(bad)}")


def _kinds(tensor: TensorStats) -> str:
    return " and ".join(f"{count:,} {kind}" for count, kind in ((tensor.nans, "NaN"), (tensor.infs, "infinite")) if count)


def _deliberate(tensor: TensorStats) -> bool:
    return bool(_MASK.search(tensor.name)) and not tensor.nans


RULE: Rule[CheckpointEvidence] = Rule(code="RUN701", severity=Severity.ERROR, cause="checkpoint", needs=("autopsy",), check=check)
