"""A .keras archive: recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """A zip archive whose first record is one of Keras's."""
    return 60 if seen.head[:4] == b"PK\x03\x04" and (b"metadata.json" in seen.head[:64] or b"model.weights.h5" in seen.head[:64]) else 0


FORMAT = Format(
    name="keras-zip",
    title="Keras archive",
    recognise=recognise,
    declined="Keras runs are outside what mpdoctor judges",
)
