"""A GGUF file (llama.cpp): recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """The magic number."""
    return 90 if seen.head[:4] == b"GGUF" else 0


FORMAT = Format(
    name="gguf",
    title="GGUF file",
    recognise=recognise,
    declined="weights quantised for inference, without optimizer or scaler",
)
