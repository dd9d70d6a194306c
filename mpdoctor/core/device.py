"""A GPU (or CPU) and what can be read of it: every metric is a value, or the reason why there is none."""

from __future__ import annotations

from dataclasses import field, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar

from mpdoctor.core.location import DeviceRef
from mpdoctor.core.record import dataclass

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Reading(Generic[T_co]):
    """One metric: `value`, or None with the `reason` (not supported, no permission, lost, missing in this driver)."""

    value: T_co | None = None
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.value is not None

    def __str__(self) -> str:
        return str(self.value) if self.value is not None else f"unknown ({self.reason or 'not read'})"


class Support(StrEnum):
    """How a device computes in a number format."""

    TENSOR_CORES = "tensor-cores"
    """Native matrix units."""
    NATIVE = "native"
    """Native arithmetic without matrix units."""
    EMULATED = "emulated"
    """Widened to fp32, computed there, rounded back: correct, slower than fp32."""
    STORAGE = "storage"
    """Tensors can be made; arithmetic is slow, missing, or wrong."""
    NONE = "none"
    UNKNOWN = "unknown"

    @property
    def native(self) -> bool:
        """Whether the hardware itself computes in the format."""
        return self in (Support.TENSOR_CORES, Support.NATIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSupport:
    """Support for each training format, with a note where one is needed. From the capability table."""

    fp16: Support = Support.UNKNOWN
    bf16: Support = Support.UNKNOWN
    tf32: Support = Support.UNKNOWN
    fp8: Support = Support.UNKNOWN
    fp4: Support = Support.UNKNOWN
    notes: tuple[str, ...] = ()

    def get(self, name: str) -> Support:
        """Support for `fp16`, `bf16`, `tf32`, `fp8` or `fp4`; fp32 is native everywhere."""
        return Support.NATIVE if name == "fp32" else getattr(self, name, Support.UNKNOWN)


def unread() -> Reading[Any]:
    """A metric that nothing asked for."""
    return Reading(None, "not read")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInfo:
    """One device at one instant.

    `source` says where it comes from: `nvml`, `amdsmi`, `sysfs` or `sysctl` (read), `table` (named by `--gpu`), `cpu`.
    """

    ref: DeviceRef
    vendor: str
    source: str
    compute_capability: Reading[tuple[int, int]] = field(default_factory=Reading)
    architecture: Reading[str] = field(default_factory=Reading)
    formats: FormatSupport = field(default_factory=FormatSupport)
    metrics: dict[str, Reading[Any]] = field(default_factory=dict)
    """Everything else that was asked for, by name, units in the name (`memory_total_bytes`, `ecc_enabled`, `power_watts`, ...); plain JSON values.

    `state` is there for every GPU that was read: `ok`, `lost`, `needs reset`, or why it cannot be read.
    """

    @property
    def name(self) -> str:
        """Marketing name as the driver or the table gives it."""
        return self.ref.name

    def metric(self, name: str) -> Reading[Any]:
        """A metric by name; absent metrics read as not read."""
        return self.metrics.get(name, unread())


def known(device: GpuInfo, name: str) -> bool:
    """Whether a field or metric of a device has a value (for `Rule.needs`)."""
    if name in {f.name for f in fields(device)}:
        value = getattr(device, name)
        return bool(value)
    return bool(device.metric(name))
