"""An HDF5 file (Keras weights): recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """The magic number."""
    return 90 if seen.head[:8] == b"\x89HDF\r\n\x1a\n" else 0


FORMAT = Format(
    name="hdf5",
    title="Keras HDF5 file",
    recognise=recognise,
    declined="Keras and TensorFlow runs are outside what mpdoctor judges",
)
