"""Counts what fp16 could not hold of a model's activations, by one forward pass in the precision that they were born in."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch

from mpdoctor.core.numerics import FP16
from mpdoctor.replay.activation_range import ActivationRange, ModuleRange
from mpdoctor.replay.live.fast16 import available, fast_16_bit_kernels
from mpdoctor.replay.live.finiteness import readable, tensors_in

_PRODUCTS = ("Linear", "Conv", "Bilinear")
"""Parts of the class names of modules whose product autocast computes in 16 bits."""


@dataclass(slots=True)
class _Count:
    values: int = 0
    infinite: int = 0
    zero: int = 0
    amax: float = 0.0

    def add(self, tensor: torch.Tensor) -> None:
        """Count the finite values of a tensor."""
        flat = readable(tensor.detach())
        if flat is None:
            return
        low, high = (value.item() for value in torch.aminmax(flat))
        if not (math.isfinite(low) and math.isfinite(high)):
            flat = flat[torch.isfinite(flat)]
            low, high = (value.item() for value in torch.aminmax(flat)) if flat.numel() else (0.0, 0.0)
        largest = max(-low, high)
        half = flat.to(torch.float16)
        self.values += flat.numel()
        self.infinite += int(torch.isinf(half).sum()) if largest > FP16.max else 0
        self.zero += int(torch.count_nonzero(flat)) - int(torch.count_nonzero(half))
        self.amax = max(self.amax, largest)


def activation_census(model: torch.nn.Module, forward: Callable[[], Any]) -> ActivationRange:
    """The activations of one forward pass, which runs without gradients and leaves the model as it is.

    Args:
        model: in the precision to run in; it is put into evaluation mode meanwhile.
        forward: runs the pass. One that raises is counted up to there.
    """
    counts: dict[str, _Count] = {}
    products: set[str] = set()
    training = {module for module in model.modules() if module.training}
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if name:
                product = any(part in type(module).__name__ for part in _PRODUCTS)
                products |= {name} if product else set()
                stack.enter_context(_counted(module, counts.setdefault(name, _Count()), inputs=product))
        if torch.bfloat16 in dtypes and available() and all(p.device.type == "cpu" for p in model.parameters()):
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # torch remarks on every kernel that is replaced
            stack.enter_context(fast_16_bit_kernels())
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        try:
            model.eval()
            with suppress(Exception):  # what raises is for the replay to tell
                forward()
        finally:
            for module in training:
                module.training = True
    modules = tuple(
        ModuleRange(module=n, values=c.values, infinite=c.infinite, zero=c.zero, amax=c.amax, product=n in products)
        for n, c in counts.items()
        if c.values
    )
    dtype = str(next(iter(dtypes))).removeprefix("torch.") if len(dtypes) == 1 else "mixed dtypes"
    return ActivationRange(dtype=dtype, modules=modules, pure=dtypes == {torch.bfloat16})


@contextmanager
def _counted(module: torch.nn.Module, count: _Count, *, inputs: bool) -> Iterator[None]:
    """Count what a module makes, and what it reads where `inputs` is set, until the end of the block."""

    def saw(_module: torch.nn.Module, arguments: Any, output: Any) -> None:
        for tensor in (*tensors_in(output), *(tensors_in(arguments) if inputs else ())):
            count.add(tensor)

    handle = module.register_forward_hook(saw)
    try:
        yield
    finally:
        handle.remove()
