"""fp32 master weights put under an optimizer that works on 16-bit weights."""

from __future__ import annotations

from typing import Any

import torch

_LOW = (torch.float16, torch.bfloat16)


class MasterWeights:
    """Widens an optimizer's 16-bit weights, gradients and moments to fp32 for the time of a step.

    The fp32 copies (`masters`, by id of the parameter) are kept between steps, so that small updates collect; the model gets
    the rounded weight back.
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.masters: dict[int, torch.Tensor] = {}
        self._narrow: list[tuple[torch.nn.Parameter, torch.dtype, torch.Tensor | None, torch.Tensor]] = []

    @torch.no_grad()
    def widen(self) -> None:
        """Put the masters in the place of the 16-bit weights."""
        self._narrow = []
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.dtype not in _LOW:
                    continue
                dtype, grad, small = parameter.dtype, parameter.grad, parameter.data
                master = self.masters.get(id(parameter))
                if master is None or not torch.equal(master.to(dtype), small):
                    master = small.float()
                parameter.grad = None
                parameter.data = master
                if grad is not None:
                    parameter.grad = grad.float()
                state = self.optimizer.state.get(parameter, {})
                for key, value in state.items():
                    if isinstance(value, torch.Tensor) and value.dtype in _LOW:
                        state[key] = value.float()
                self._narrow.append((parameter, dtype, grad, small))

    @torch.no_grad()
    def narrow(self) -> None:
        """Give the model its 16-bit weights back, rounded from the masters."""
        for parameter, dtype, grad, small in self._narrow:
            master = parameter.data
            self.masters[id(parameter)] = master
            parameter.grad = None
            small.copy_(master.to(dtype))
            parameter.data = small
            parameter.grad = grad
        self._narrow = []
