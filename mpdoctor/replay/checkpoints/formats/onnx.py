"""An ONNX model: recognised and declined."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.format import Format, Seen


def recognise(seen: Seen) -> int:
    """By name: protobuf carries no mark."""
    return 40 if seen.path.suffix == ".onnx" else 0


FORMAT = Format(
    name="onnx",
    title="ONNX model",
    recognise=recognise,
    declined="a graph for inference, without training state",
)
