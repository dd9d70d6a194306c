"""Gradients by binary exponent, with what fp16 holds at the loss scale in use and the window of scales that work."""

from __future__ import annotations

import math

from mpdoctor.core.numerics import BF16, FP16
from mpdoctor.report.html.charts.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Drawing, Scale
from mpdoctor.report.measured import Exponents, Window

FP16_SMALLEST = math.log2(FP16.smallest_subnormal)
FP16_LARGEST = math.log2(FP16.max)


def held_by_fp16(window: Window | None) -> tuple[float, float]:
    """Binary exponents of the smallest and largest true gradient that fp16 holds at the loss scale in use (1 where none is known)."""
    scale = math.log2(window.used) if window and window.used and window.used > 0 else 0.0
    return FP16_SMALLEST - scale, FP16_LARGEST - scale


def _window_limits(window: Window | None) -> tuple[float, ...]:
    """What the window of working scales keeps: the smallest gradient held at its lowest scale, the largest held at its highest."""
    if window is None or window.low > window.high or window.low <= 0 or not math.isfinite(window.high):
        return ()
    return FP16_SMALLEST - math.log2(window.low), FP16_LARGEST - math.log2(window.high)


def gradient_exponents(layer: Exponents, window: Window | None) -> Chart:
    """A histogram over the exponents of the true gradients.

    At loss scale s fp16 holds true gradients from 2^-24 / s to 65504 / s; the band shows that for the scale in use.
    """
    low, high = held_by_fp16(window)
    present = sorted(layer.counts)
    limits = _window_limits(window) if layer.name == "all" else ()
    first, last = math.floor(min([*present, low, *limits])) - 1, math.ceil(max([*present, high, *limits])) + 1
    across = Scale(low=first, high=last + 1, start=LEFT, end=WIDTH - RIGHT)
    most = max(layer.counts.values(), default=1)
    title = "All gradients" if layer.name == "all" else layer.name
    lost = layer.below(low)
    too_large = layer.above(high)
    extent = f"Exponents from {present[0]} to {present[-1]}" if present else "All are zero"
    outside = f"{lost:.1%} below what fp16 holds and {too_large:.1%} above it at loss scale {2.0 ** (FP16_SMALLEST - low):g}"
    description = f"{extent}; {outside}; {layer.zeros / layer.elements:.1%} exactly zero"
    drawing = Drawing(title, description)
    drawing.box(across(low), TOP, across(high) - across(low), HEIGHT - TOP - BOTTOM, "range", "what fp16 holds at the loss scale in use")
    for exponent in present:
        height = (HEIGHT - TOP - BOTTOM) * math.log1p(layer.counts[exponent]) / math.log1p(most)
        inside = low <= exponent <= high
        drawing.box(
            across(exponent) + 0.5, HEIGHT - BOTTOM - height, across(exponent + 1) - across(exponent) - 1, height,
            "bar" if inside else "bar bad", f"2^{exponent}: {layer.counts[exponent]} elements",
        )  # fmt: skip
    for limit in limits:
        drawing.line(across(limit), TOP, across(limit), HEIGHT - BOTTOM, "limit")
    drawing.line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")
    drawing.text(across(low), TOP - 3, f"2^{round(low)}", "label faint", anchor="middle")
    drawing.text(across(high), TOP - 3, f"2^{round(high)}", "label faint", anchor="middle")
    drawing.text(LEFT, HEIGHT - 6, f"2^{first}")
    drawing.text(WIDTH - RIGHT, HEIGHT - 6, f"2^{last}", anchor="end")
    drawing.text(LEFT - 4, TOP + 6, f"{most}", anchor="end")
    drawing.text(LEFT - 4, HEIGHT - BOTTOM, "0", anchor="end")
    return Chart(title=title, description=description, svg=drawing.finish())


BF16_NOTE = f"bf16 holds 2^{int(math.log2(BF16.smallest_subnormal))} to 2^128 and needs no loss scale."
