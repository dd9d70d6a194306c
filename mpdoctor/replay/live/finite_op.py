"""One op's result made finite: the counterfactual that proves an op to be the origin."""

from __future__ import annotations

from typing import Any

import torch

from mpdoctor.replay.live.finiteness import FINITE, status, tensors_in
from mpdoctor.replay.live.step_mode import StepMode


class FiniteOp(StepMode):
    """Replaces non-finite elements of one op's results, and of its derivative's, by 1 (of the same sign).

    1 rather than 0, because 0 is where roots, logarithms and divisions go wrong next.

    Args:
        number: which op of the step, counted as the tracer counts them (the first op is 0).
        optimizer_ops: whether that tracer saw the ops of `optimizer.step`.
    """

    def __init__(self, number: int, *, optimizer_ops: bool) -> None:
        super().__init__(optimizer_ops=optimizer_ops)
        self.number = number
        self.count = 0
        self._sequence: int | None = None
        """Sequence number of the autograd node that the op made, or belongs to."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        before = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        out = func(*args, **(kwargs or {}))
        node = torch._C._current_autograd_node()
        if self.count == self.number:
            if node is not None and not torch.is_grad_enabled():
                self._sequence = node._sequence_nr()
            elif before > 0:
                self._sequence = before - 1  # the node was made just before the op was dispatched
        in_derivative = node is not None and self._sequence is not None and node._sequence_nr() == self._sequence
        if self.count == self.number or in_derivative:
            written = [args[i] for i, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write and i < len(args)]
            for tensor in (*tensors_in(out), *tensors_in(written)):
                if tensor.is_floating_point() and status(tensor) != FINITE:
                    tensor.nan_to_num_(nan=1.0, posinf=1.0, neginf=-1.0)
        self.count += 1
        return out
