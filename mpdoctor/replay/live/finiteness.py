"""Is a tensor finite, and how large is it? One read, no temporaries.

`aminmax` is exact and runs at memory speed; `isfinite(x).all()` costs 25 to 50 reads (measured on a CPU).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes, is_in_torch_dispatch_mode

P = ParamSpec("P")
T = TypeVar("T")

FINITE, NAN, POS_INF, NEG_INF = 0, 1, 2, 4
"""Bits of a status."""

_FLOATS = frozenset((torch.float64, torch.float32, torch.float16, torch.bfloat16))
_COMPLEX = frozenset((torch.complex64, torch.complex128, torch.complex32))


def own_look(function: Callable[P, T]) -> Callable[P, T]:
    """A look at the run's tensors that is no op of the run: the modes of `fidelity.py` and of the tracer do not see it, nor cost it time."""

    @wraps(function)
    def look(*args: P.args, **kwargs: P.kwargs) -> T:
        with torch._C.DisableTorchFunction(), _disable_current_modes() if is_in_torch_dispatch_mode() else nullcontext():
            return function(*args, **kwargs)

    return look


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """All tensors in nested tuples, lists, mappings and dataclass-like outputs."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth > 8:
        return
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item, depth + 1)


def readable(tensor: torch.Tensor) -> torch.Tensor | None:
    """A real floating view of the tensor's values in storage order, or None if there is nothing to read.

    Reading in storage order matters: `aminmax` copies non-contiguous tensors, which costs 10 to 20 reads.
    """
    if tensor.dtype in _FLOATS and tensor.layout is torch.strided and tensor.is_contiguous() and tensor.device.type != "meta":
        return tensor if tensor.numel() else None  # nearly all tensors
    if tensor.layout is not torch.strided:
        if tensor.layout is torch.sparse_coo:
            tensor = tensor._values()
        elif tensor.layout in (torch.sparse_csr, torch.sparse_csc):
            tensor = tensor.values()
        else:
            return None
    if tensor.dtype in _COMPLEX:
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype not in _FLOATS or tensor.device.type == "meta":
        return None
    numel = tensor.numel()
    if numel == 0:
        return None
    if not tensor.is_contiguous():
        dims = [(stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and stride != 0]
        expected = 1
        for stride, size in sorted(dims):
            if stride != expected:
                return tensor
            expected *= size
        return tensor.as_strided((expected,), (1,))
    return tensor


def extremes(tensor: torch.Tensor) -> tuple[float, float] | None:
    """Smallest and largest value (NaN if any is NaN), or None for a tensor without floating values."""
    flat = readable(tensor.detach())
    if flat is None:
        return None
    low, high = torch.aminmax(flat)
    return low.item(), high.item()


def sum_of_squares(flat: torch.Tensor) -> float | None:
    """Sum of squares of a `readable` fp32 tensor on the CPU, by the fastest read there; None for any other tensor.

    It is finite only if all values are. Products in 16 bits would round, and a GPU wants one launch for many tensors.
    """
    if flat.dtype is not torch.float32 or flat.device.type != "cpu" or not flat.is_contiguous():
        return None
    values = flat.view(-1)
    return torch.dot(values, values).item()


def status_of(low: float, high: float) -> int:
    """Status bits of a tensor with these extremes. NaN hides infinities."""
    if math.isnan(low) or math.isnan(high):
        return NAN
    return (POS_INF if high == math.inf else 0) | (NEG_INF if low == -math.inf else 0)


def status(tensor: torch.Tensor) -> int:
    """Status bits of a tensor; FINITE for one without floating values."""
    found = extremes(tensor)
    return FINITE if found is None else status_of(*found)


def is_finite(tensor: torch.Tensor) -> bool:
    """Whether all values are finite."""
    return status(tensor) == FINITE


def kind_name(bits: int) -> str:
    """`nan`, `inf` or `-inf` for a status that is not finite."""
    if bits & NAN:
        return "nan"
    return "inf" if bits & POS_INF else "-inf"


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Torch's name of a dtype without prefix."""
    return str(dtype).removeprefix("torch.")


def storage_key(tensor: torch.Tensor) -> int:
    """Identity of a tensor's memory; views share it. Sparse tensors go by their values."""
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()
    elif tensor.layout is not torch.strided:
        return id(tensor)
    return tensor.untyped_storage().data_ptr()


def versions(args: Any) -> tuple[int, ...]:
    """Version counters of the tensors in a call's arguments: they rise when a tensor is modified."""
    return tuple(t._version for t in tensors_in(args))


def floating_in(value: Any) -> list[torch.Tensor]:
    """Floating and complex tensors that hold elements."""
    return [t for t in tensors_in(value) if (t.is_floating_point() or t.is_complex()) and t.numel() > 0]


def first_bad_index(tensor: torch.Tensor) -> tuple[int, ...]:
    """Index of the first element that is not finite; empty for a scalar."""
    if tensor.layout is not torch.strided or tensor.dim() == 0:
        return ()
    bad = (~torch.isfinite(tensor.detach())).nonzero()
    return tuple(int(i) for i in bad[0]) if len(bad) else ()


def bad_mask(tensor: torch.Tensor) -> torch.Tensor | None:
    """Which elements are not finite; None for a tensor without strides."""
    return ~torch.isfinite(tensor.detach()) if tensor.layout is torch.strided else None
