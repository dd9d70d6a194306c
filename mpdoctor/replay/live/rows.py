"""A batch's tensors by name, its rows, and the batch with some of them only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_map

from mpdoctor.replay.live.finiteness import tensors_in


def batch_size(batch: Any) -> int | None:
    """Number of rows: the commonest leading size of the batch's tensors, or None where there is none."""
    sizes = Counter(int(t.shape[0]) for t in tensors_in(batch) if t.dim() > 0 and t.numel() > 0)
    if not sizes:
        return None
    size, count = sizes.most_common(1)[0]
    return size if count * 2 >= sum(sizes.values()) else None


def with_rows(batch: Any, rows: tuple[int, ...]) -> Any:
    """The batch with these rows only. Tensors of another leading size stay whole."""
    size = batch_size(batch)

    def pick(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value[list(rows)] if value.dim() > 0 and value.shape[0] == size and value.numel() > 0 else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(pick(v) for v in value))
        if isinstance(value, (tuple, list)):
            return type(value)(pick(v) for v in value)
        if isinstance(value, Mapping):
            return {k: pick(v) for k, v in value.items()}
        return value

    return pick(batch)


def in_float64(batch: Any) -> Any:
    """The batch with its floating tensors in fp64."""
    return tree_map(lambda v: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, batch)


def named_tensors(value: Any, prefix: str = "batch") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in a batch, each with the expression that reaches it (`batch[0]`, `batch['labels']`)."""
    if isinstance(value, torch.Tensor):
        yield prefix, value
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from named_tensors(item, f"{prefix}[{i}]")
    elif hasattr(value, "items"):
        for key, item in value.items():
            yield from named_tensors(item, f"{prefix}[{key!r}]")
