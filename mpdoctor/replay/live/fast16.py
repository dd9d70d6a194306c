"""16-bit matrix products, convolutions and attention on a CPU at fp32 speed: upcast, compute in fp32, round once.

CPUs without native 16-bit units run them 12 to 28 times slower than fp32 (measured). Rounding once from an fp32
accumulation is also closer to what tensor cores do. On CUDA nothing is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LOW = (torch.bfloat16, torch.float16)
_OPS = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "convolution",
    "convolution_backward",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
)


def _upcast(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _LOW else value


@contextmanager
def fast_16_bit_kernels() -> Iterator[None]:
    """Replace the CPU kernels of the 16-bit matrix ops until the end of the block."""
    library = torch.library.Library("aten", "IMPL")
    try:
        for name in _OPS:
            kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
            library.impl(name, _rounding_once(kernel, name), "CPU", with_keyset=True, allow_override=True)
        yield
    finally:
        library._destroy()


def available() -> bool:
    """Whether this torch can override kernels (`torch.library.get_kernel`, from 2.9)."""
    return hasattr(torch.library, "get_kernel")


def _mixed(args: tuple[Any, ...]) -> bool:
    """Whether tensors of several floating dtypes meet: torch's own kernel refuses them, and so must the replay."""
    return len({a.dtype for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()}) > 1


def _rounding_once(kernel: Any, name: str) -> Any:
    one_dtype = "attention" not in name  # an attention's log-sum-exp is fp32

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        first = next((a for a in args if isinstance(a, torch.Tensor)), None)
        if first is None or first.dtype not in _LOW or (one_dtype and _mixed(args)):
            return kernel.call_boxed(keyset, *args, **kwargs)
        result = kernel.call_boxed(keyset, *[_upcast(a) for a in args], **{k: _upcast(v) for k, v in kwargs.items()})
        if isinstance(result, torch.Tensor):
            return result.to(first.dtype)
        if name.endswith("for_cpu"):
            # The second result is the log-sum-exp, which stays fp32.
            return (result[0].to(first.dtype), *result[1:])
        return tuple(r.to(first.dtype) if isinstance(r, torch.Tensor) else r for r in result)

    return run
