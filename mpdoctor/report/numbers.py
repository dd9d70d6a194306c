"""Numbers and dtypes as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "float8_e4m3fn": "fp8-e4m3", "float8_e5m2": "fp8-e5m2"}

_BARS = "▁▂▃▄▅▆▇█"


def number(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits; whole numbers below a million in full; a dash for None."""
    if value is None:
        return "–"
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.{digits}g}"


def dtype(name: str | None) -> str:
    """Short form that people use of a torch dtype (`float16` -> `fp16`)."""
    return "" if name is None else _DTYPES.get(name.removeprefix("torch."), name.removeprefix("torch."))


def plain(value: Any) -> str:
    """Any plain JSON value in a few words."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case dict():
            return " · ".join(f"{words(str(key))} {plain(item)}" for key, item in value.items())
        case list() | tuple():
            items = [plain(item) for item in value[:6]]
            shown = ("; " if any(" " in item for item in items) else ", ").join(items)
            return shown + (f" and {len(value) - 6} more" if len(value) > 6 else "")
    return str(value)


def words(name: str) -> str:
    """A key as words (`loss_scale_window` -> `loss scale window`)."""
    return name.replace("_", " ")


def count(number_of: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number_of} {noun}" if number_of == 1 else f"{number_of} {noun}s"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """A curve in block characters: `✗` for a non-finite value, a blank for a missing one.

    Each column shows the largest value of its share of the steps, so that no spike is lost; a non-finite one wins. The scale is
    logarithmic when all values are positive and span more than a factor of 50.
    """
    shares = _shares(values, width)
    finite = [value for value in shares if value is not None and math.isfinite(value)]
    if not finite:
        return "".join(" " if value is None else "✗" for value in shares)
    low, high = min(finite), max(finite)
    logarithmic = low > 0 and high / low > 50

    def level(value: float) -> int:
        if high / 2 == low / 2:
            return 3
        # Differences of logarithms and halves: quotients and differences of extreme values overflow.
        if logarithmic:
            fraction = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        else:
            fraction = (value / 2 - low / 2) / (high / 2 - low / 2)
        return min(int(fraction * len(_BARS)), len(_BARS) - 1)

    return "".join(" " if value is None else _BARS[level(value)] if math.isfinite(value) else "✗" for value in shares)


def _shares(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    result: list[float | None] = []
    for column in range(width):
        share = [v for v in values[column * len(values) // width : (column + 1) * len(values) // width] if v is not None]
        bad = [v for v in share if not math.isfinite(v)]
        result.append(bad[0] if bad else max(share, default=None))
    return result
