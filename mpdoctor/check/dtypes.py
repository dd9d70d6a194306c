"""Names of number formats, as configs spell them."""

from __future__ import annotations

_NAMES = {
    "fp16": ("fp16", "float16", "half", "16", "f16"),
    "bf16": ("bf16", "bfloat16", "bfp16"),
    "fp32": ("fp32", "float32", "float", "32", "full", "single", "no"),
    "fp64": ("fp64", "float64", "double", "64"),
    "tf32": ("tf32",),
    "fp8": ("fp8", "float8", "float8_e4m3fn", "float8_e5m2", "fp8_e4m3", "fp8_e5m2", "e4m3", "e5m2"),
    "int8": ("int8", "uint8"),
}
_SHORT = {alias: name for name, aliases in _NAMES.items() for alias in aliases}
SIXTEEN_BIT = ("fp16", "bf16")


def dtype_name(text: str) -> str | None:
    """The short name (`fp16`) of a format however it is spelled (`torch.float16`, `half`, `16`), or None."""
    return _SHORT.get(text.strip().lower().removeprefix("torch.").removeprefix("dtype."))
