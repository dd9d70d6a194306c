"""Apple GPUs: number formats by chip and macOS.

Sources: pytorch#119641 (bf16 on MPS needs macOS 14), transformers' import checks (Metal emulates bf16 on M1 and M2), pytorch#141864 (Intel Macs).
"""

from __future__ import annotations

import re

from mpdoctor.core.device import FormatSupport, Support

_NONE = Support.NONE


def formats(chip: str, macos: tuple[int, ...] | None) -> FormatSupport:
    """Support for each training format.

    Args:
        chip: the CPU's brand string (`Apple M2 Pro`).
        macos: version, most significant first; None where unknown (a chip named by the user).
    """
    generation = re.search(r"\bM(\d+)", chip)
    if "intel" in chip.lower():
        return FormatSupport(fp16=Support.NATIVE, bf16=_NONE, tf32=_NONE, fp8=_NONE, fp4=_NONE, notes=("no Apple silicon: MPS has no bf16 here",))
    if generation is None:
        return FormatSupport(notes=(f"{chip or 'this chip'} is not in the table",))
    notes = ["bf16 needs macOS 14, bf16 autocast needs torch 2.6"]
    bf16 = Support.NATIVE if int(generation[1]) >= 3 else Support.EMULATED
    if bf16 is Support.EMULATED:
        notes.append("Metal emulates bf16 on M1 and M2")
    if macos is not None and macos < (14,):
        bf16 = _NONE
        notes.append(f"macOS {'.'.join(map(str, macos))} is too old for bf16")
    return FormatSupport(fp16=Support.NATIVE, bf16=bf16, tf32=_NONE, fp8=_NONE, fp4=_NONE, notes=tuple(notes))
