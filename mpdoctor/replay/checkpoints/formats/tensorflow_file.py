"""A file of a TensorFlow checkpoint: recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """By name, as its index and data files carry no mark at their start."""
    name = seen.path.name
    return 40 if name.endswith(".ckpt.index") or ".data-00000-of-" in name or name == "saved_model.pb" else 0


FORMAT = Format(
    name="tensorflow-file",
    title="TensorFlow checkpoint",
    recognise=recognise,
    declined="TensorFlow runs are outside what mpdoctor judges",
)
