"""A TensorFlow checkpoint or SavedModel folder: recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """SavedModel, or the files of a TensorFlow checkpoint."""
    if "saved_model.pb" in seen.names:
        return 50
    shards = any(".data-00000-of-" in name for name in seen.names)
    return 45 if shards and any(name.endswith(".index") for name in seen.names) else 0


FORMAT = Format(
    name="tensorflow-folder",
    title="TensorFlow checkpoint",
    folder=True,
    recognise=recognise,
    declined="TensorFlow runs are outside what mpdoctor judges",
)
