"""Cards as rules see them, made here so that these tests do not need the table of GPUs."""

from __future__ import annotations

import pytest

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.location import DeviceRef

CARDS = {
    "v100": ("Tesla V100-SXM2-16GB", "nvidia", (7, 0)),
    "t4": ("Tesla T4", "nvidia", (7, 5)),
    "gtx1650": ("NVIDIA GeForce GTX 1650", "nvidia", (7, 5)),
    "1080ti": ("NVIDIA GeForce GTX 1080 Ti", "nvidia", (6, 1)),
    "a100": ("NVIDIA A100-SXM4-80GB", "nvidia", (8, 0)),
    "4090": ("NVIDIA GeForce RTX 4090", "nvidia", (8, 9)),
    "h100": ("NVIDIA H100 80GB HBM3", "nvidia", (9, 0)),
    "b200": ("NVIDIA B200", "nvidia", (10, 0)),
    "mi300x": ("AMD Instinct MI300X", "amd", None),
    "m2": ("Apple M2", "apple", None),
    "cpu": ("CPU", "cpu", None),
}


def card(name: str) -> GpuInfo:
    title, vendor, capability = CARDS[name]
    reading = Reading(capability) if capability else Reading(None, "only NVIDIA cards have one")
    return GpuInfo(ref=DeviceRef(name=title), vendor=vendor, source="table", compute_capability=reading)


@pytest.fixture
def cards():
    return card
