"""NumPy arrays (.npy, .npz): recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """A .npy file, or a zip archive of them."""
    npy = seen.head[:6] == b"\x93NUMPY"
    npz = seen.head[:4] == b"PK\x03\x04" and b".npy" in seen.head[30:300]
    return 80 if npy or npz else 0


FORMAT = Format(
    name="numpy-archive",
    title="NumPy archive",
    recognise=recognise,
    declined="arrays without training state",
)
