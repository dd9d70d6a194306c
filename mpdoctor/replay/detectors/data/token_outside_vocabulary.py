"""A token id has no row in the model's embedding.

What it looks for
Ids below 0 or from the size of the embedding on, in data that comes tokenised or from the folder's tokenizer.

Why training breaks
The lookup reads past the table: on a CPU it raises, on a GPU it stops with "device-side assert triggered", after which every call fails.
The usual reasons are tokens that were added without `resize_token_embeddings`, and data that another tokenizer made.

When it is fine
Never.

Example
`train.jsonl, line 12: token 32000, and the embedding has 32000 rows`

Instead
`model.resize_token_embeddings(len(tokenizer))` before training, or tokenise with the model's own tokenizer.

How to confirm
`mpdoctor replay` shows the step that raises.

References
huggingface/transformers: `resize_token_embeddings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.data_evidence import DataEvidence, FaultKind, facts, place_of, told


def check(evidence: DataEvidence) -> Iterator[Hit]:
    """One hit for all such rows; less sure as the cause where no replayed step reads one."""
    faults = evidence.of(FaultKind.TOKEN)
    if faults:
        sure = Confidence.HIGH if faults[0].row in evidence.replayed else Confidence.MEDIUM
        yield Hit(message=told(faults, evidence.path), at=place_of(faults[0], evidence.path), evidence=facts(faults, evidence.path), confidence=sure)


RULE: Rule[DataEvidence] = Rule(code="RUN122", severity=Severity.ERROR, cause="dirty-data", check=check)
