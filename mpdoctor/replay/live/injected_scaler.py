"""Dynamic loss scaling put under a loop that has none of its own."""

from __future__ import annotations

from typing import Any

import torch

from mpdoctor.replay.live.finiteness import FINITE, status


class InjectedScaler:
    """Scales what backward starts from, unscales before clipping or stepping, halves the scale on overflow.

    A step with an overflow is taken with zero gradients, since a running `optimizer.step` cannot be skipped.
    """

    def __init__(self) -> None:
        self.scale = 2.0**16
        self._unscaled: set[int] = set()

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to start backward from."""
        self._unscaled.clear()
        return loss.float() * self.scale

    @torch.no_grad()
    def unscale(self, optimizer: Any) -> bool:
        """Divide the optimizer's gradients by the scale, once per backward; whether they are finite."""
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if id(optimizer) not in self._unscaled:
            self._unscaled.add(id(optimizer))
            for grad in grads:
                grad.div_(self.scale)
        return all(status(g) == FINITE for g in grads)

    def before_step(self, optimizer: Any) -> None:
        """Unscale; on overflow clear the gradients and halve the scale."""
        if not self.unscale(optimizer):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.zero_()
            self.scale /= 2
