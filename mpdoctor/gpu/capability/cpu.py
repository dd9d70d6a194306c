"""CPUs: number formats by instruction set flags, as the kernel names them.

Intel: `amx_bf16` and `amx_fp16` are matrix units, `avx512_bf16` and `avx512_fp16` vector units (`avx_ne_convert` converts only). Arm: `bf16` has
matrix instructions too, `asimdhp` is fp16 arithmetic. Without them autocast is right, but slower than fp32.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from mpdoctor.core.device import FormatSupport, Support

TELLING = frozenset(
    {"amx_bf16", "amx_fp16", "amx_tile", "avx512_bf16", "avx512_fp16", "avx512f", "avx2", "asimdhp", "fphp", "bf16", "sve", "sve2", "svebf16", "sme"}
)
"""Flags that say something about training; others are left out of the report."""


def formats(flags: AbstractSet[str]) -> FormatSupport:
    """Support for each training format."""
    bf16 = Support.TENSOR_CORES if "amx_bf16" in flags else Support.NATIVE if flags & {"avx512_bf16", "bf16", "svebf16"} else Support.EMULATED
    fp16 = Support.TENSOR_CORES if "amx_fp16" in flags else Support.NATIVE if flags & {"avx512_fp16", "asimdhp"} else Support.EMULATED
    notes = []
    if bf16 is Support.EMULATED:
        notes.append("no bf16 units: bf16 on this CPU is right, but slower than fp32")
    notes.append("autocast('cpu') is bf16 unless told otherwise; CPU autocast keeps fewer operations in fp32 than CUDA's")
    return FormatSupport(fp16=fp16, bf16=bf16, tf32=Support.NONE, fp8=Support.NONE, fp4=Support.NONE, notes=tuple(notes))
