"""What is wrong with a batch, in words: facts that no precision could train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mpdoctor.replay.live.finiteness import FINITE, NAN, extremes, kind_name, status_of
from mpdoctor.replay.live.rows import named_tensors

IGNORED_LABEL = -100
"""torch's default `ignore_index`."""
FAR_OUTLIER = 1e6
"""Rows that nothing else points to must be this many times larger than the other rows of their batch."""
OUTLIER = 1e3
"""A batch whose largest magnitude is this many times the largest of the others is an outlier."""


def batch_facts(batch: Any, others: Sequence[Any], rows: Sequence[int] = ()) -> tuple[str, ...]:
    """Facts about a batch, compared with other batches of the run: non-finite values, outliers, ignored labels, empty rows.

    `rows` are those that carry the bad value: they are compared with the other rows of the batch too.
    """
    found: list[str] = []
    elsewhere = _largest(others)
    for name, tensor in named_tensors(batch):
        if tensor.layout is not torch.strided:
            continue
        low_high = extremes(tensor)
        if low_high is not None:
            bits = status_of(*low_high)
            if bits & NAN or bits == 2:
                bad = ~torch.isfinite(tensor)
                where = _rows(bad)
                found.append(f"{name}: {int(bad.sum())} of {tensor.numel()} values are {kind_name(bits)}{where}")
            elif bits == FINITE:
                size = max(abs(v) for v in low_high)
                usual = elsewhere.get(name)
                if usual and size > OUTLIER * usual:
                    found.append(f"{name}: values up to {size:.3g}, {size / usual:.2g} times the largest of the other batches")
                elif (fact := _outlying_rows(tensor, rows)) is not None:
                    found.append(f"{name}: {fact}")
        elif not tensor.is_floating_point() and tensor.dim() > 0 and tensor.numel() > 1 and bool((tensor == IGNORED_LABEL).all()):
            found.append(f"{name}: all {tensor.numel()} labels are {IGNORED_LABEL} (ignored)")
        if tensor.numel() == 0 and elsewhere.get(f"{name} numel", 0) > 0:
            found.append(f"{name}: empty")
    return tuple(found)


def _outlying_rows(tensor: torch.Tensor, rows: Sequence[int]) -> str | None:
    """What is unusual about a few rows (those given, or any) against the other rows of the batch."""
    if tensor.dim() == 0 or tensor.shape[0] < 4 or not tensor.is_floating_point() or not tensor[0].numel():
        return None
    sizes = tensor.detach().abs().reshape(tensor.shape[0], -1).amax(1).double()
    proportion = OUTLIER if rows else FAR_OUTLIER
    rows = rows or tuple((sizes > FAR_OUTLIER * sizes.median()).nonzero().flatten().tolist())
    if not rows or max(rows) >= tensor.shape[0] or 2 * len(rows) > tensor.shape[0]:
        return None
    named = torch.zeros(tensor.shape[0], dtype=torch.bool, device=tensor.device)
    named[list(rows)] = True
    usual, size = float(sizes[~named].max()), float(sizes[named].min())
    if not usual or size <= proportion * usual:
        return None
    word = f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:8]))}"
    return f"{word}: values up to {float(sizes[named].max()):.3g}, {size / usual:.2g} times the largest of the other rows"


def _largest(batches: Sequence[Any]) -> dict[str, float]:
    """Largest finite magnitude of each tensor over the batches, by its name."""
    found: dict[str, float] = {}
    for batch in batches:
        for name, tensor in named_tensors(batch):
            found[f"{name} numel"] = max(found.get(f"{name} numel", 0), tensor.numel())
            low_high = extremes(tensor) if tensor.layout is torch.strided else None
            if low_high is not None and status_of(*low_high) == FINITE:
                found[name] = max(found.get(name, 0.0), abs(low_high[0]), abs(low_high[1]))
    return found


def _rows(bad: torch.Tensor) -> str:
    if bad.dim() == 0:
        return ""
    rows = bad.reshape(bad.shape[0], -1).any(1).nonzero().flatten().tolist()
    return f" (row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:8]))}{'...' if len(rows) > 8 else ''})" if len(rows) < bad.shape[0] else ""
