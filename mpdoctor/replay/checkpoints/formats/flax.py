"""Weights of Flax (JAX), a msgpack file: recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """A msgpack map under Flax's names."""
    first = seen.head[:1]
    is_map = first in (b"\xde", b"\xdf") or b"\x80" < first <= b"\x8f"
    return 60 if is_map and seen.path.suffix == ".msgpack" else 0


FORMAT = Format(
    name="flax",
    title="Flax msgpack file",
    recognise=recognise,
    declined="JAX runs are outside what mpdoctor judges",
)
