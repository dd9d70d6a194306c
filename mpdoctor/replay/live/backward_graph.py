"""What the autograd graph of a loss tells before it runs: where it comes from, and which parameters no gradient can reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

_FLAT = {"Round": "round", "Sign": "sign", "Sgn": "sgn", "Floor": "floor", "Ceil": "ceil", "Trunc": "trunc", "Heaviside": "heaviside"}
"""Autograd nodes of step functions, without `Backward0`."""
_MOST_NODES = 200_000
_NEAR = 64
"""Nodes that are looked at between a backward pass's start and a scaled loss."""


def comes_from(root: torch.Tensor, results: Sequence[torch.Tensor]) -> bool:
    """Whether `root` was computed from one of `results` by a few ops."""
    wanted = {id(result.grad_fn) for result in results if result.grad_fn is not None}
    queue = [root.grad_fn] if root.grad_fn is not None and wanted else []
    for _ in range(_NEAR):
        if not queue:
            return False
        node = queue.pop(0)
        if id(node) in wanted:
            return True
        queue += [n for n, _ in node.next_functions if n is not None]
    return False


def cut_parameters(loss: torch.Tensor, names: Mapping[int, str]) -> dict[str, str]:
    """Parameter -> the step function (`round`) that stands on every way from `loss` to it.

    Args:
        loss: what the backward pass starts from; its graph is only read.
        names: id of each parameter -> its name.
    """
    reached = _reached(loss.grad_fn, names, through=True)
    if not reached or not any(reached.values()):
        return {}
    open_ways = _reached(loss.grad_fn, names, through=False)
    return {name: op for name, op in reached.items() if op and name not in open_ways}


def _reached(root: Any, names: Mapping[int, str], *, through: bool) -> dict[str, str]:
    """Parameters that the graph reaches, each with the last step function on one way to it; step functions end a way unless `through`."""
    found: dict[str, str] = {}
    stack: list[tuple[Any, str]] = [(root, "")] if root is not None else []
    seen: set[Any] = {root}
    while stack and len(seen) < _MOST_NODES:
        node, op = stack.pop()
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) in names:
            found[names[id(variable)]] = op
            continue
        flat = _FLAT.get(type(node).__name__.partition("Backward")[0])
        if flat is not None:
            if not through:
                continue
            op = flat
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append((following, op))
    return found
