"""How a tensor's elements lie in its storage: densely in some order, or with gaps."""

from __future__ import annotations

from math import prod

from mpdoctor.replay.checkpoints import TensorEntry


def dense(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether the elements fill their extent without gaps, in any order (contiguous, transposed, channels last).

    Dimensions that repeat the same elements (stride 0) do not count: repeating changes no verdict.
    """
    if strides is None or 0 in shape:
        return True
    expected = 1
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size != 1 and stride != 0):
        if stride != expected:
            return False
        expected *= size
    return True


def index_of(position: int, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> tuple[int, ...]:
    """Index of the element at a position of the storage (of a dense tensor), or of the flat order (strides None)."""
    if strides is None:
        steps, step = [], 1
        for size in reversed(shape):
            steps.append(step)
            step *= max(size, 1)
        strides = tuple(reversed(steps))
    index = [0] * len(shape)
    for dimension in sorted(range(len(shape)), key=lambda d: -strides[d]):
        if shape[dimension] > 1 and strides[dimension] > 0:
            index[dimension], position = divmod(position, strides[dimension])
    return tuple(index)


def kept_shape(tensor: TensorEntry) -> tuple[int, ...]:
    """The shape with repeated dimensions (stride 0) as one."""
    strides = tensor.strides or tensor.shape
    return tuple(1 if stride == 0 else size for size, stride in zip(tensor.shape, strides, strict=True))


def gathered_bytes(tensor: TensorEntry) -> int:
    """Bytes of all elements of a view put together; more than its extent where they overlap."""
    return prod(kept_shape(tensor)) * tensor.item_bytes


def gathered(data: bytearray, tensor: TensorEntry) -> bytes:
    """The elements of a view with gaps, in order. `data` is the tensor's extent."""
    import numpy as np

    width = tensor.item_bytes
    items = np.frombuffer(data, dtype=np.dtype((np.void, width)))
    strides = [stride * width for stride in tensor.strides or ()]
    return np.lib.stride_tricks.as_strided(items, kept_shape(tensor), strides, writeable=False).tobytes()
