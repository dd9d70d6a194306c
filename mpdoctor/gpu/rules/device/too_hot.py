"""The GPU is at its temperature limit.

What it looks for
    A temperature at or above the slowdown limit, or no margin left.

Why training breaks
    It slows down. Heat is not a cause of NaN by itself.

When it is fine
    Never for long: clocks fall, and one hot rank slows the others.

How to confirm
    `nvidia-smi -q -d TEMPERATURE`.

References
    nvmlDeviceGetTemperatureThreshold, nvmlDeviceGetMarginTemperature in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Either way of telling it."""
    now, limit = gpu.metric("temperature_celsius").value, gpu.metric("temperature_slowdown_celsius").value
    margin = gpu.metric("temperature_margin_celsius").value
    if (now is not None and limit and now >= limit) or (margin is not None and margin <= 0):
        told = f"{now:.0f} °C, the limit is {limit:.0f}" if now is not None and limit else f"{margin} °C left"
        yield Hit(message=f"too hot: {told}", at=gpu.ref, remedy=Remedy(text="Check fans, airflow and dust; it costs speed, not correctness."))


RULE: Rule[GpuInfo] = Rule(code="GPU313", severity=Severity.WARNING, check=check, needs=("temperature_celsius",))
